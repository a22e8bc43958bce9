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
    const int found = me % OUTPUTS;  // of so many vectors; PIECES work-items add up each first
    const int piece = me / OUTPUTS;
    WIDE4 whole[MATRICES];
#if NORMED
    float square = 0.0f;
    if (me % CX == 0) lengths[ky] = squares.x + squares.y + squares.z + squares.w;
#endif
    UNROLL for (int m = 0; m < MATRICES; ++m) {
        UNROLL for (int n = 0; n < WIDTH; ++n) partial[n * GROUP + me] = sums[m * WIDTH + n];
        BARRIER;
        if (piece < PIECES) {
            WIDE4 some = WIDE_SPLAT(0.0f);
            for (int k = piece; k < KY; k += PIECES) some += partial[found / CX * GROUP + k * CX + found % CX];
            met[me] = some;
        }
        BARRIER;
        whole[m] = WIDE_SPLAT(0.0f);
        if (piece == 0) {
            UNROLL for (int p = 0; p < PIECES; ++p) whole[m] += met[p * OUTPUTS + me];
        }
    }
#if NORMED
    if (me < PIECES) {
        for (int k = me; k < KY; k += PIECES) square += lengths[k];
    }
    BARRIER;
    if (me < PIECES) lengths[me] = square;
    BARRIER;
    square = 0.0f;
    UNROLL for (int p = 0; p < PIECES; ++p) square += lengths[p];
    const WIDE4 inverse = WIDE_SPLAT(1.0f / SQRT(square / FLOAT(depth) + epsilon));
    UNROLL for (int m = 0; m < MATRICES; ++m) whole[m] *= inverse;
#endif
    const int column = (GROUP_ID(0) * CX + found % CX) * WIDTH + found / CX;
    if (piece == 0 && column < columns4) {
        WIDE4 sum = whole[0];
        if (has_bias != 0) sum += TO_WIDE4(LOAD_bias(column));
#if MATRICES == 2
        const WIDE4 other = whole[1];
#endif
        STORE_dst(dst_start + column, ACTIVATE(sum));
    }
}
