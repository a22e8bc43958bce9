    // Row `row` of this batch is the data set's sample number `drawn`: a permutation of 0 .. samples - 1 that depends on
    // the seed and the epoch (kernels/training/shuffle.py), a Feistel network that is walked until it is inside.
#define MIX(h) h ^= h >> 16; h *= 0x85ebca6bu; h ^= h >> 13; h *= 0xc2b2ae35u; h ^= h >> 16;
    const int done = LOAD_counter(0);
    const uint low = (1u << half_bits) - 1u;
    uint key = done / batches;
    key += 0x9e3779b9u;
    MIX(key)
    const uint seed_bits = seed;
    key ^= seed_bits;
    MIX(key)
    uint place = done % batches * batch + row;
    const uint end = samples;
    do {
        uint left = place >> half_bits;
        uint right = place & low;
        for (uint turn = 0u; turn < 6u; ++turn) {
            uint mixed = right + key + turn * 0x9e3779b9u;
            MIX(mixed)
            const uint next = left ^ (mixed & low);
            left = right;
            right = next;
        }
        place = (left << half_bits) | right;
    } while (place >= end);
    const int drawn = TO_INT(place);
