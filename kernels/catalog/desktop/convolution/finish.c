                if (row < rows && stack < out_stacks) {
                    sum += other;
                    TRIM(stack == out_stacks - 1, sum)
                    STORE_dst((picture * dst_stacks + dst_stack0 + first_stack + stack) * pixels + pixel, ACTIVATE(sum));
                }
