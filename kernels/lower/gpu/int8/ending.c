            const int from_end = 2 + 4 * stack;
            const FLOAT4 scale_in = LOAD_steps(picture * per_picture);
            FLOAT4 value = FROM_INT4(sum - INT_SPLAT(TO_INT(scale_in.y)) * LOAD_weight(stack));
            value = value * (SPLAT(scale_in.x) * LOAD_ending(from_end)) + LOAD_ending(from_end + 1);
            const FLOAT4 sizes = LOAD_ending(0);  // of the steps: of sums, branch, residual, result
            const FLOAT4 zeros = LOAD_ending(1);
#if SUMS_ROUNDED
            value = DIVIDE4(value, sizes.x);
            value = IN_STEPS(value, zeros.x) * SPLAT(sizes.x);
#endif
#if SCALED
            value = value * LOAD_ending(from_end + 2) + LOAD_ending(from_end + 3);
#endif
#if BRANCH_ROUNDED
            value = DIVIDE4(value, sizes.y);
            value = IN_STEPS(value, zeros.y) * SPLAT(sizes.y);
#endif
#if RESIDUAL == 1
            value = value + TO_WIDE4(LOAD_residual((picture * residual_stacks + residual_stack0 + stack) * oh * ow + pixel));
#endif
#if RESIDUAL == 2
            const int others = LOAD_residual((picture * residual_stacks + residual_stack0 + stack) * oh * ow + pixel);
            value = value + (FROM_INT4(BYTES(others)) + SPLAT(128.0f - zeros.z)) * SPLAT(sizes.z);
#endif
            TRIM(stack == last_stack, value)
            value = ACTIVATE(value);
            const int to = (picture * dst_stacks + dst_stack0 + stack) * oh * ow + pixel;
#if WRITES == 1 || WRITES == 3
            STORE_dst(to, value);
#endif
#if WRITES > 1
            value = DIVIDE4(value, sizes.w);
            value = IN_STEPS(value, zeros.w);
#endif
#if WRITES == 2 || WRITES == 3 || WRITES == 6
            STORE_codes((picture * (last_stack + 1) + stack) * oh * ow + pixel, WORD(TO_INT4(value + SPLAT(zeros.w - 128.0f))));
#endif
#if WRITES >= 4
            STORE_dst(to, value * SPLAT(sizes.w));
#endif
