// Part of a concat whose channel offset is not a multiple of four: one work-item a pixel and channel.
// `written` >= channels: the last part also clears the lanes beyond the last channel.
{
    const int pixel = GLOBAL_ID(0);
    const int c = GROUP_ID(1);
    if (pixel >= hw || c >= written) return;
    const int picture = GROUP_ID(2);
    const int to = dst_channel0 + c;
    const int from = IMIN(c, channels - 1);
    const float value = LOAD_src(((picture * src_stacks + src_stack0 + from / 4) * hw + pixel) * 4 + from % 4);
    STORE_dst(((picture * dst_stacks + dst_stack0 + to / 4) * hw + pixel) * 4 + to % 4, c < channels ? value : 0.0f);
}
