// A filter a channel, or FILTERS of them: PIXELS adjacent outputs of a row x one stack of four channels a work-item. A window of KW adjacent
// columns, SW apart from one output to the next: each row of the source is loaded once for all of them.
// Weights: [stacks][kh][kw] vectors of four channels.
{
    INCLUDE row_block
    INCLUDE sums
    for (int ky = 0; ky < kh; ++ky) {
        INCLUDE source_row
        FLOAT4 value[COLUMNS];
        UNROLL for (int c = 0; c < COLUMNS; ++c) {
            const int ix = ox * SW - pad_l + c;
            const FLOAT4 loaded = LOAD_src(row + CLAMPED(ix, w));
            value[c] = row_inside && INSIDE(ix, w) ? OWN(loaded) : SPLAT(0.0f);
        }
        FETCH_WEIGHTS((stack * kh + ky) * KW);
        UNROLL for (int kx = 0; kx < KW; ++kx) {
            const FLOAT4 weights_x = WEIGHT(kx);
            UNROLL for (int p = 0; p < PIXELS; ++p) chunk[p] = MAD(value[p * SW + kx], weights_x, chunk[p]);
        }
        FOLD(KW)
    }
    INCLUDE store
}
