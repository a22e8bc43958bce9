    // A work-item takes one of a pixel's WIDTH channels. WHOLE: all of them, as suits a CPU; sizes are constants then.
#ifdef WHOLE
#define EACH WIDTH
    const int pixel = GLOBAL_ID(0);
    const int first = 0;
#else
#define EACH 1
    const int pixel = GLOBAL_ID(0) / WIDTH;
    const int first = GLOBAL_ID(0) % WIDTH;
#endif
    if (pixel >= count / WIDTH) return;
