// One work-group a chunk of `span` pixels of a stack: its mean, then the sum of squared distances from that mean.
{
    const int me = LOCAL_ID(0);
    const int chunk = GROUP_ID(0);
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int plane = (picture * src_stacks + src_stack0 + stack) * hw;
    const int first = chunk * span;
    const int end = IMIN(first + span, hw);
    FLOAT4 sum = SPLAT(0.0f);
    for (int from = first + me; from < end; from += IN_A_ROW * KY) {
        FLOAT4 part = SPLAT(0.0f);
        for (int i = from; i < IMIN(from + IN_A_ROW * KY, end); i += KY) part += LOAD_src(plane + i);
        sum += part;
    }
    partial[me] = sum;
    INCLUDE summed
    const FLOAT4 mean = partial[0] / SPLAT(FLOAT(end - first));
    BARRIER;
    sum = SPLAT(0.0f);
    for (int from = first + me; from < end; from += IN_A_ROW * KY) {
        FLOAT4 part = SPLAT(0.0f);
        for (int i = from; i < IMIN(from + IN_A_ROW * KY, end); i += KY) {
            const FLOAT4 distance = LOAD_src(plane + i) - mean;
            part = MAD(distance, distance, part);
        }
        sum += part;
    }
    partial[me] = sum;
    INCLUDE summed
    if (me == 0) {
        const int at = ((picture * stacks + stack) * chunks + chunk) * 2;
        STORE_sums(at, mean);
        STORE_sums(at + 1, partial[0]);
    }
}
