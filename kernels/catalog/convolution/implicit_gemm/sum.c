// The sums of a convolution whose depth was divided: [division][picture][stack][pixel] in.
{
    const int pixel = GLOBAL_ID(0);
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    if (pixel >= area) return;
    WIDE4 each[DIVISIONS];
    UNROLL for (int d = 0; d < DIVISIONS; ++d) each[d] = LOAD_src(((d * pictures + picture) * out_stacks + stack) * area + pixel);
    WIDE4 sum = TO_WIDE4(LOAD_bias(stack));
    UNROLL for (int d = 0; d < DIVISIONS; ++d) sum += each[d];
    if (has_residual != 0) {
        sum += TO_WIDE4(LOAD_residual((picture * residual_stacks + residual_stack0 + stack) * area + pixel));
    }
    TRIM(stack == out_stacks - 1, sum)
    STORE_dst((picture * dst_stacks + dst_stack0 + stack) * area + pixel, ACTIVATE(sum));
}
