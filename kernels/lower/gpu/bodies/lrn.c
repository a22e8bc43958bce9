// Across channels: x / (bias + alpha / size * sum of squares in the window) ** beta, a stack a work-item.
{
    const int pixel = GLOBAL_ID(0);
    if (pixel >= hw) return;
    const int stack = GROUP_ID(1);
    const int picture = GROUP_ID(2);
    const int base = (picture * src_stacks + src_stack0) * hw;
    const int before = (size - 1) / 2;
    const int after = size / 2;
    const int first = IMAX(stack * 4 - before, 0) / 4;
    const int last = IMIN(stack * 4 + 3 + after, channels - 1) / 4;

    float squares[4];
    UNROLL for (int lane = 0; lane < 4; ++lane) squares[lane] = 0.0f;
    for (int other = first; other <= last; ++other) {
        const FLOAT4 x = LOAD_src(base + other * hw + pixel);
        float square[4];
        square[0] = x.x * x.x;
        square[1] = x.y * x.y;
        square[2] = x.z * x.z;
        square[3] = x.w * x.w;
        UNROLL for (int j = 0; j < 4; ++j) {
            UNROLL for (int lane = 0; lane < 4; ++lane) {
                const int apart = (other - stack) * 4 + j - lane;
                const bool counts = apart >= -before && apart <= after && other * 4 + j < channels;
                squares[lane] += counts ? square[j] : 0.0f;
            }
        }
    }
    const FLOAT4 scale =
        SPLAT(bias) + SPLAT(alpha / FLOAT(size)) * VEC4(squares[0], squares[1], squares[2], squares[3]);
    const FLOAT4 x = LOAD_src(base + stack * hw + pixel);
    FLOAT4 result;
    if (beta == 0.75f) {  // what networks have; a general power takes ten times as long on a CPU
        const FLOAT4 root = SQRT(scale);
        result = x / (root * SQRT(root));
    } else {
        float factor[4];
        factor[0] = scale.x;
        factor[1] = scale.y;
        factor[2] = scale.z;
        factor[3] = scale.w;
        UNROLL for (int lane = 0; lane < 4; ++lane) {
            const float scaled = factor[lane];
            // not every driver's power of infinity is zero, or of NaN is NaN
            factor[lane] = scaled <= 3.4e38f ? POW(scaled, -beta) : scaled > 3.4e38f ? 0.0f : scaled;
        }
        result = x * VEC4(factor[0], factor[1], factor[2], factor[3]);
    }
    const int valid = channels - stack * 4;  // what lies behind them stays finite
    result = VEC4(result.x, valid > 1 ? result.y : 0.0f, valid > 2 ? result.z : 0.0f, valid > 3 ? result.w : 0.0f);
    STORE_dst((picture * dst_stacks + dst_stack0 + stack) * hw + pixel, result);
}
