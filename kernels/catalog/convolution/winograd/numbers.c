#if WIDE
#define NUMBER FLOAT4
#define NOTHING SPLAT(0.0f)
#define LANES_APART 1
#define ACTIVATE_NUMBER(v) ACTIVATE(v)
#define TRIM_NUMBER(is_last, v) TRIM(is_last, v)
    const int lane = 0;
    const int tile = GLOBAL_ID(0);
#else
#define NUMBER float
#define NOTHING 0.0f
#define LANES_APART 4
#define ACTIVATE_NUMBER(v) ACTIVATE1(v)
#define TRIM_NUMBER(is_last, v) TRIM1(is_last, lane, v)
    const int lane = GLOBAL_ID(0) % 4;
    const int tile = GLOBAL_ID(0) / 4;
#endif
