// The gradient of `unfold`: each pixel adds up what all windows that hold it have for it.
{
#define WIDTH src_stride
#define DOWN dh
#define ACROSS dw
#define SHARE(at, channel) ((channel) < channels ? LOAD_src((at) + (ky * kw + kx) * channels + (channel)) : 0.0f)
    INCLUDE window_gradient
}
