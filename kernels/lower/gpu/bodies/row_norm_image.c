// Of an image in stacks: a work-group normalises WIDTH pixels over all their channels and writes them as rows. LINES work-items
// hold a pixel, EACH stacks of it: mean, mean squared distance from it, then each element, through local memory.
{
#define TOGETHER(mine, at) \
    partial[(at) + me] = (mine); \
    BARRIER; \
    sum = 0.0f; \
    for (int i = 0; i < LINES; ++i) sum += partial[(at) + i * WIDTH + column]
    const int me = LOCAL_ID(0);
    const int column = me % WIDTH;
    const int line = me / WIDTH;
    const int first = GROUP_ID(0) * WIDTH;
    const int from = (GROUP_ID(1) * src_stacks + src_stack0) * hw + IMIN(first + column, hw - 1);
    const float count = FLOAT(4 * columns4);
    float sum;
    WIDE4 held[EACH];
    UNROLL for (int e = 0; e < EACH; ++e) held[e] = TO_WIDE4(LOAD_src(from + IMIN(line + e * LINES, columns4 - 1) * hw));
    WIDE4 own = WIDE_SPLAT(0.0f);
    UNROLL for (int e = 0; e < EACH; ++e) {
        if (line + e * LINES < columns4) own += held[e];
    }
    TOGETHER(own.x + own.y + own.z + own.w, 0);
    const WIDE4 mean = WIDE_SPLAT(sum / count);
    own = WIDE_SPLAT(0.0f);
    UNROLL for (int e = 0; e < EACH; ++e) {
        held[e] -= mean;
        if (line + e * LINES < columns4) own = MAD(held[e], held[e], own);
    }
    TOGETHER(own.x + own.y + own.z + own.w, WIDTH * LINES);
    const WIDE4 inverse = WIDE_SPLAT(1.0f / SQRT(sum / count + epsilon));
    const int stack = me % LINES;
    const int pixel = me / LINES;
    const int to = (GROUP_ID(1) * hw + first + pixel) * columns4 + stack;
    UNROLL for (int e = 0; e < EACH; ++e) {
        const int at = IMIN(line + e * LINES, columns4 - 1);
        square[column * PITCH + line] = MAD(held[e] * inverse, TO_WIDE4(LOAD_scale(at)), TO_WIDE4(LOAD_shift(at)));
        BARRIER;
        if (first + pixel < hw && stack + e * LINES < columns4) STORE_dst(to + e * LINES, square[pixel * PITCH + stack]);
        BARRIER;
    }
}
