// Study A's first kernel: one node of a layer and one sample; the weighted sum, the bias, the activation.
{
    const int node = GLOBAL_ID(0);
    if (node >= nodes) return;
    const int row = GROUP_ID(1);
    float sum = has_bias != 0 ? LOAD_bias(node) : 0.0f;
    for (int i = 0; i < inputs; ++i) {
        const int at = TURNED != 0 ? node * weight_stride + i : i * weight_stride + node;
        sum += LOAD_src(row * src_stride + i) * LOAD_weight(at);
    }
    const float result = ACTIVATE1(sum);
    STORE_dst(row * stride + node, result);
}
