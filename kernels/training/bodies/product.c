// A product with what follows it in a training. A work-group has SLICES teams of GX x GY work-items; each team computes
// the same tile of the result from its own part of the depth, through local memory, and the teams' sums are added up.
// Operands lie either way round (A_WAY, B_WAY: 0 as they are multiplied, 1 transposed), or are the windows of an image
// (A_WAY 2; 3 transposed; B_WAY 2: a convolution's weights as its gradient reads them), of whole vectors of channels.
// END: 0 store with bias and activation, 1 times an activation's gradient, 2 a step of the weight. COLUMN_SUMS: the sums
// of the right operand's columns too, which are the bias's gradient. EACH: the depth of one of the PARTS, along z.
{
    const int me = LOCAL_ID(0) % TEAM;
    const int slice = LOCAL_ID(0) / TEAM;
    const int tx = me % GX;
    const int ty = me / GX;
    const int first_row4 = GROUP_ID(1) * TILE_ROWS4;
    const int first_column4 = GROUP_ID(0) * TILE_COLUMNS4;
    const int begin = GROUP_ID(2) * each;
    const int end = IMIN(depth, begin + each);
    const int stages = (each + SLICES * TILE_DEPTH - 1) / (SLICES * TILE_DEPTH);
    const int a_at = slice * LOCAL_A_SLICE;
    const int b_at = slice * LOCAL_B_SLICE;
    WIDE4 sums[SUMS_ALL];
    UNROLL for (int i = 0; i < SUMS_ALL; ++i) sums[i] = WIDE_SPLAT(0.0f);
    FLOAT4 next_a[FETCHED_A];
    FLOAT4 next_b[FETCHED_B];
    for (int stage = 0; stage <= stages; ++stage) {
        if (stage > 0) {
            BARRIER;
            UNROLL for (int f = 0; f < FETCHES_A; ++f) {
                const int square = me + f * TEAM;
                if (square < SQUARES_A) {
#if A_WAY % 2 == 0
                    const int at = a_at + square % DEPTH * 4 * PITCH + square / DEPTH;
                    tile_a[at] = VEC4(next_a[f * 4].x, next_a[f * 4 + 1].x, next_a[f * 4 + 2].x, next_a[f * 4 + 3].x);
                    tile_a[at + PITCH] = VEC4(next_a[f * 4].y, next_a[f * 4 + 1].y, next_a[f * 4 + 2].y, next_a[f * 4 + 3].y);
                    tile_a[at + 2 * PITCH] = VEC4(next_a[f * 4].z, next_a[f * 4 + 1].z, next_a[f * 4 + 2].z, next_a[f * 4 + 3].z);
                    tile_a[at + 3 * PITCH] = VEC4(next_a[f * 4].w, next_a[f * 4 + 1].w, next_a[f * 4 + 2].w, next_a[f * 4 + 3].w);
#else
                    const int at = a_at + square / TILE_ROWS4 * 4 * PITCH + square % TILE_ROWS4;
                    UNROLL for (int j = 0; j < 4; ++j) tile_a[at + j * PITCH] = next_a[f * 4 + j];
#endif
                }
            }
            UNROLL for (int f = 0; f < FETCHES_B; ++f) {
                const int square = me + f * TEAM;
                if (square < SQUARES_B) {
#if B_WAY > 0
                    const int at = b_at + square % DEPTH * 4 * PITCH_B + square / DEPTH;
                    tile_b[at] = VEC4(next_b[f * 4].x, next_b[f * 4 + 1].x, next_b[f * 4 + 2].x, next_b[f * 4 + 3].x);
                    tile_b[at + PITCH_B] = VEC4(next_b[f * 4].y, next_b[f * 4 + 1].y, next_b[f * 4 + 2].y, next_b[f * 4 + 3].y);
                    tile_b[at + 2 * PITCH_B] = VEC4(next_b[f * 4].z, next_b[f * 4 + 1].z, next_b[f * 4 + 2].z, next_b[f * 4 + 3].z);
                    tile_b[at + 3 * PITCH_B] = VEC4(next_b[f * 4].w, next_b[f * 4 + 1].w, next_b[f * 4 + 2].w, next_b[f * 4 + 3].w);
#else
                    const int at = b_at + square / TILE_COLUMNS4 * 4 * PITCH_B + square % TILE_COLUMNS4;
                    UNROLL for (int j = 0; j < 4; ++j) tile_b[at + j * PITCH_B] = next_b[f * 4 + j];
#endif
                }
            }
            BARRIER;
        }
        if (stage < stages) {
            const int from = begin + (stage * SLICES + slice) * TILE_DEPTH;
    INCLUDE product_fetch
        }
        if (stage > 0) {
            UNROLL for (int k = 0; k < TILE_DEPTH; ++k) {
                FLOAT4 left[RV];
                FLOAT4 right[CV];
                UNROLL for (int r = 0; r < RV; ++r) left[r] = tile_a[a_at + k * PITCH + ty + r * GY];
                UNROLL for (int c = 0; c < CV; ++c) right[c] = tile_b[b_at + k * PITCH_B + tx + c * GX];
                UNROLL for (int r = 0; r < RV; ++r) {
                    UNROLL for (int c = 0; c < CV; ++c) {
                        sums[(r * 4 + 0) * CV + c] = MAD(SPLAT(left[r].x), right[c], sums[(r * 4 + 0) * CV + c]);
                        sums[(r * 4 + 1) * CV + c] = MAD(SPLAT(left[r].y), right[c], sums[(r * 4 + 1) * CV + c]);
                        sums[(r * 4 + 2) * CV + c] = MAD(SPLAT(left[r].z), right[c], sums[(r * 4 + 2) * CV + c]);
                        sums[(r * 4 + 3) * CV + c] = MAD(SPLAT(left[r].w), right[c], sums[(r * 4 + 3) * CV + c]);
                    }
                }
#if COLUMN_SUMS
                UNROLL for (int c = 0; c < CV; ++c) sums[SUMS + c] += right[c];
#endif
            }
        }
    }
#if SLICES > 1
    UNROLL for (int i = 0; i < SUMS_ALL; ++i) meeting[i * GROUP + LOCAL_ID(0)] = sums[i];
    BARRIER;
#endif
#if END == 2
    const float rate = LOAD_rates(IMIN(LOAD_counter(0) / batches, epochs - 1));
#endif
    UNROLL for (int i = 0; i < SUMS; ++i) {
        if (i % SLICES == slice) {
            const int row = 4 * (first_row4 + ty + i / CV / 4 * GY) + i / CV % 4;
            const int column = first_column4 + tx + i % CV * GX;
            if (row < rows && column < columns4) {
                WIDE4 sum = sums[i];
#if SLICES > 1
                sum = WIDE_SPLAT(0.0f);
                UNROLL for (int s = 0; s < SLICES; ++s) sum += meeting[i * GROUP + s * TEAM + me];
#endif
                const int at = row * columns4 + column;
#if ADDS
                sum += LOAD_addend(at);
#endif
#if END == 0
                if (has_bias != 0) sum += LOAD_bias(column);
                STORE_dst(GROUP_ID(2) * part_size + at, ACTIVATE(sum));
#elif END == 1
                const WIDE4 value_here = LOAD_value(at);
                if (activation == 1) {
                    STORE_dst(at, VEC4(value_here.x > 0.0f ? sum.x : 0.0f, value_here.y > 0.0f ? sum.y : 0.0f,
                                       value_here.z > 0.0f ? sum.z : 0.0f, value_here.w > 0.0f ? sum.w : 0.0f));
                } else {
                    STORE_dst(at, sum * value_here * (WIDE_SPLAT(1.0f) - value_here));
                }
#else
#if MOMENTUM
                sum += WIDE_SPLAT(momentum) * LOAD_velocity(at);
                STORE_velocity(at, sum);
#endif
                STORE_weight(at, LOAD_weight(at) - WIDE_SPLAT(rate) * sum);
#endif
            }
        }
    }
#if COLUMN_SUMS
    if (GROUP_ID(1) == 0 && ty == 0) {
        UNROLL for (int c = 0; c < CV; ++c) {
            const int column = first_column4 + tx + c * GX;
            if (c % SLICES == slice && column < columns4) {
                WIDE4 sum = sums[SUMS + c];
#if SLICES > 1
                sum = WIDE_SPLAT(0.0f);
                UNROLL for (int s = 0; s < SLICES; ++s) sum += meeting[(SUMS + c) * GROUP + s * TEAM + me];
#endif
#if END == 0
                STORE_dst(GROUP_ID(2) * part_size + rows * columns4 + column, sum);
#elif END == 2
                INCLUDE bias_step
#endif
            }
        }
    }
#endif
}
