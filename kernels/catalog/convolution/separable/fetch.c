            UNROLL for (int j = 0; j < STACK_SLOTS; ++j) {
                const int stack = stage * DEPTH + me / TILE_PIXELS + j * STACK_STEP;
                UNROLL for (int i = 0; i < PIXEL_SLOTS; ++i) {
                    next_src[j * PIXEL_SLOTS + i] = SPLAT(0.0f);
                    if (stack < in_stacks) {
#ifdef TAKES
                        const WIDE4 from = LOAD_table(stack);
                        next_src[j * PIXEL_SLOTS + i] = VEC4(
                            TAKEN(plane[i], TO_INT(from.x)), TAKEN(plane[i], TO_INT(from.y)),
                            TAKEN(plane[i], TO_INT(from.z)), TAKEN(plane[i], TO_INT(from.w)));
#else
                        const int from = plane[i] + stack * h * w;
                        WIDE4 sum = TO_WIDE4(LOAD_inner_bias(stack));
                        UNROLL for (int ky = 0; ky < KH; ++ky) {
                            const int iy = top[i] + ky * dh;
                            UNROLL for (int kx = 0; kx < KW; ++kx) {
                                const int ix = left[i] + kx * dw;
                                const FLOAT4 loaded = LOAD_src(from + CLAMPED(iy, h) * w + CLAMPED(ix, w));
                                const FLOAT4 value = INSIDE(iy, h) && INSIDE(ix, w) ? loaded : SPLAT(0.0f);
                                const FLOAT4 weight = LOAD_inner_weight(gate[i] + (stack * KH + ky) * KW + kx);
                                sum = MAD(TO_WIDE4(value), TO_WIDE4(weight), sum);
                            }
                        }
                        next_src[j * PIXEL_SLOTS + i] = TO_COMPUTED(ACTIVATED(sum, inner_activation, inner_lo, inner_hi));
#endif
                    }
                }
            }
            UNROLL for (int j = 0; j < LOADS_WEIGHT; ++j) {
                next_weight[j] = RAW_ZERO;
                if (me + j * GROUP < HALF_WEIGHT && stage < stages) next_weight[j] = LOAD_RAW_weight(weight_at + j * GROUP);
            }
            weight_at += HALF_WEIGHT * SPLIT;
