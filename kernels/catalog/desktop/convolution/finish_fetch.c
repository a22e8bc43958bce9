                others[t] = WIDE_SPLAT(0.0f);
#if !IN_REGISTERS
                kept[t] += TO_WIDE4(LOAD_bias(channel_tile * (2 * TILE_COLUMNS8) + column));
#endif
                if (has_residual != 0 && row < rows && stack < out_stacks) {
                    others[t] = TO_WIDE4(LOAD_residual((picture * residual_stacks + residual_stack0 + first_stack + stack) * pixels + pixel));
                }
