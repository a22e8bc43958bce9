// One row times a matrix, or MATRICES of them: CX times WIDTH vectors of four columns a work-group, the depth shared out over KY
// work-items each. All that a work-item reads of TURNS vectors of the depth is on its way before the first product; sums meet in
// local memory twice. NORMED: the row is divided by the root of its mean square, and multiplied by `norm`. EIGHTS: two vectors of
// halves are one read.
#if EIGHTS
#define READ EIGHT
#define VECTOR_OF(v, w) ((w) == 0 ? LOW4(v) : HIGH4(v))
#define READ_b(i) LOAD_EIGHT_b((i) / 2)
#define READ_twin(i) LOAD_EIGHT_twin((i) / 2)
#else
#define READ FLOAT4
#define VECTOR_OF(v, w) TO_WIDE4(v)
#define READ_b(i) LOAD_b(i)
#define READ_twin(i) LOAD_twin(i)
#endif
{
    const int me = LOCAL_ID(0);
    const int ky = me / CX;
    const int row = 0;
    const int dst_stride = 0;
    const int vectors = depth / 4;
    const int at = IMIN((GROUP_ID(0) * CX + me % CX) * WIDTH, columns4 - WIDTH);
    WIDE4 sums[SUMS];
    UNROLL for (int i = 0; i < SUMS; ++i) sums[i] = WIDE_SPLAT(0.0f);
#if NORMED
    WIDE4 squares = WIDE_SPLAT(0.0f);
#endif
    for (int first = ky; first < vectors; first += TURNS * KY) {
        READ right[READS];
        WIDE4 left[TURNS];
        UNROLL for (int turn = 0; turn < TURNS; ++turn) {
            const int from = at + 4 * IMIN(first + turn * KY, vectors - 1) * b_stride;
            UNROLL for (int k = 0; k < 4; ++k) right[turn * 4 + k] = READ_b(from + k * b_stride);
#if MATRICES == 2
            UNROLL for (int k = 0; k < 4; ++k) right[(TURNS + turn) * 4 + k] = READ_twin(from + k * b_stride);
#endif
        }
        UNROLL for (int turn = 0; turn < TURNS; ++turn) {
            const int k4 = IMIN(first + turn * KY, vectors - 1);
            left[turn] = TO_WIDE4(LOAD_a(a_start + k4));
#if NORMED
            if (first + turn * KY < vectors) squares = MAD(left[turn], left[turn], squares);
            left[turn] *= TO_WIDE4(LOAD_norm(k4));
#endif
        }
        UNROLL for (int turn = 0; turn < TURNS; ++turn) {
            if (first + turn * KY < vectors) {
                UNROLL for (int m = 0; m < MATRICES; ++m) {
                    const int of = (m * TURNS + turn) * 4;
                    UNROLL for (int n = 0; n < WIDTH; ++n) {
                        WIDE4 sum = MAD(WIDE_SPLAT(left[turn].x), VECTOR_OF(right[of], n), sums[m * WIDTH + n]);
                        sum = MAD(WIDE_SPLAT(left[turn].y), VECTOR_OF(right[of + 1], n), sum);
                        sum = MAD(WIDE_SPLAT(left[turn].z), VECTOR_OF(right[of + 2], n), sum);
                        sums[m * WIDTH + n] = MAD(WIDE_SPLAT(left[turn].w), VECTOR_OF(right[of + 3], n), sum);
                    }
                }
            }
        }
    }
    INCLUDE meet
}
