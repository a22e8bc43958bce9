// The gradient before an activation, from its result and the gradient behind it: relu (1), sigmoid (3) or tanh (7).
{
    const int i = GLOBAL_ID(0);
    if (i >= count) return;
    const float y = LOAD_value(i);
    const float behind = LOAD_src(i);
    float before = behind * y * (1.0f - y);
    if (activation == 1) before = y > 0.0f ? behind : 0.0f;
    if (activation == 7) before = behind * (1.0f - y * y);
    STORE_dst(i, before);
}
