// Study A's second kernel, for the last layer, and its third (HIDDEN): one node of a layer, which goes through the batch.
// The error behind its activation, from the loss or from the layer that reads it; the gradient before it; those of its
// bias and weights. TURNED: the layer's weight is another's, transposed; ADDS: that has given its gradient already.
{
    const int node = GLOBAL_ID(0);
    if (node >= nodes) return;
    float before[BATCH];
    float sum = 0.0f;
    for (int row = 0; row < BATCH; ++row) {
#if HIDDEN
        float behind = 0.0f;
        for (int k = 0; k < next_nodes; ++k) {
            const int at = NEXT_TURNED != 0 ? k * next_stride + node : node * next_stride + k;
            behind += LOAD_error(row * error_stride + k) * LOAD_next(at);
        }
#else
        const float behind = LOAD_error(row * stride + node);
#endif
        const float y = LOAD_value(row * stride + node);
        const float slope = activation == 3 ? y * (1.0f - y) : activation == 1 && y <= 0.0f ? 0.0f : 1.0f;
        before[row] = behind * slope;
        sum += before[row];
        STORE_dst(row * stride + node, before[row]);
    }
    STORE_bias(node, sum);
    for (int i = 0; i < inputs; ++i) {
        float found = 0.0f;
        for (int row = 0; row < BATCH; ++row) found += LOAD_src(row * inputs + i) * before[row];
        const int at = TURNED != 0 ? node * weight_stride + i : i * weight_stride + node;
#if ADDS
        found += LOAD_gradient(at);
#endif
        STORE_gradient(at, found);
    }
}
