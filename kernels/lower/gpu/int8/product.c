// Sums of products of whole numbers: CX x PIXELS outputs x VECTORS stacks of four channels a work-group; KY work-items
// share out the pairs of (tap, stack of four inputs). Outputs count through all pictures; a dense layer's are its rows.
// Weights: the sums of each stack's, then [group][tile][tap][in stack][VECTORS] vectors of four outputs' words.
{
    const int part = LOCAL_ID(0) / CX;
    const int place = LOCAL_ID(0) - part * CX;
    const int tile = GROUP_ID(1);
    const int group = GROUP_ID(2);
    const int first = GROUP_ID(0) * PIXELS * CX + place;
    const int tiles = (out_stacks + VECTORS - 1) / VECTORS;
    int top[PIXELS];
    int left[PIXELS];
    int plane[PIXELS];
    int outside[PIXELS];
    UNROLL for (int p = 0; p < PIXELS; ++p) {
        const int at = IMIN(first + p * CX, count - 1);
        const int picture = at / (oh * ow);
        const int pixel = at - picture * (oh * ow);
        const int oy = pixel / ow;
        top[p] = oy * sh - pad_t;
        left[p] = (pixel - oy * ow) * sw - pad_l;
        plane[p] = (picture * groups + group) * in_stacks * h * w;
        outside[p] = 0;
#if PADDED
        const FLOAT4 scale_in = LOAD_steps(picture * per_picture);
        outside[p] = (TO_INT(scale_in.y) & 255) * 0x01010101;
#else
        plane[p] += top[p] * w + left[p];
#endif
    }
    INT4 sums[SUMS];
    UNROLL for (int i = 0; i < SUMS; ++i) sums[i] = INT_SPLAT(0);
    const int pairs = kh * kw * in_stacks;
    int weight_at = last_stack + 1 + ((group * tiles + tile) * pairs + part) * VECTORS;
    int s = part;
    int ky = 0;
    int kx = 0;
    for (int at = part; at < pairs; at += KY) {
        while (s >= in_stacks) {
            s -= in_stacks;
            kx += 1;
            if (kx == kw) {
                kx = 0;
                ky += 1;
            }
        }
        int value[PIXELS];
#if PADDED
        UNROLL for (int p = 0; p < PIXELS; ++p) {
            const int iy = top[p] + ky * dh;
            const int ix = left[p] + kx * dw;
            const int loaded = LOAD_src(plane[p] + (s * h + CLAMPED(iy, h)) * w + CLAMPED(ix, w));
            value[p] = INSIDE(iy, h) && INSIDE(ix, w) ? loaded : outside[p];
        }
#else
        const int offset = (s * h + ky * dh) * w + kx * dw;
        UNROLL for (int p = 0; p < PIXELS; ++p) value[p] = LOAD_src(plane[p] + offset);
#endif
        UNROLL for (int t = 0; t < VECTORS; ++t) {
            const INT4 weights = LOAD_weight(weight_at + t);
            UNROLL for (int p = 0; p < PIXELS; ++p) {
                sums[p * VECTORS + t].x = DOT4(value[p], weights.x, sums[p * VECTORS + t].x);
                sums[p * VECTORS + t].y = DOT4(value[p], weights.y, sums[p * VECTORS + t].y);
                sums[p * VECTORS + t].z = DOT4(value[p], weights.z, sums[p * VECTORS + t].z);
                sums[p * VECTORS + t].w = DOT4(value[p], weights.w, sums[p * VECTORS + t].w);
            }
        }
        weight_at += KY * VECTORS;
        s += KY;
    }
#if KY > 1
    UNROLL for (int i = 0; i < SUMS; ++i) partial[(i * KY + part) * CX + place] = sums[i];
    BARRIER;
    if (part > 0) return;
    for (int other = 1; other < KY; ++other) {
        UNROLL for (int i = 0; i < SUMS; ++i) sums[i] += partial[(i * KY + other) * CX + place];
    }
#endif
    for (int i = 0; i < SUMS; ++i) {  // not written out: the end is long, and takes a compiler's time
        INT4 sum = sums[0];
        UNROLL for (int j = 0; j < SUMS; ++j) if (j == i) sum = sums[j];
        const int at = first + i / VECTORS * CX;
        const int own = tile * VECTORS + i % VECTORS;
        if (at < count && own < out_stacks) {
            const int picture = at / (oh * ow);
            const int pixel = at - picture * (oh * ow);
            const int stack = group * out_stacks + own;
            INCLUDE ending
        }
    }
}
