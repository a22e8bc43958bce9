// One work-group a group of channels: the means and squares of its channels' chunks together -> mean, scale / deviation.
{
    const int me = LOCAL_ID(0);
    const int picture = GROUP_ID(2);
    const int first = GROUP_ID(0) * channels;
INCLUDE group_moments
    const int end = GROUP_ID(0) == groups - 1 ? 4 * stacks : first + channels; // lanes beyond the last channel are 0
    for (int c = first + me; c < end; c += KY) {
        const int at = (picture * stacks + c / 4) * 8 + c % 4;
        STORE_factors(at, mean);
        STORE_factors(at + 4, LOAD_scale(c) / deviation);
    }
}
