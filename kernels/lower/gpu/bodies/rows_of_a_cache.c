#define ROW(at) LOAD_q(at)
#define SCALE(at) LOAD_norm(at)
// The last place that a row sees, which is its own, and the first.
#define OWN(r) IMIN(IMAX(before + IMIN((r), rows - 1), 0), capacity - 1)
#define LEAST(own) (window > 0 ? IMAX((own) - window + 1, 0) : 0)
    const int before = INT32(LOAD_ends(batch)) + 1 - rows;
    const int plane = (batch * kept + head / (heads / kept)) * capacity;
