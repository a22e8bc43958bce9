// Instructions of compute capability 9.0 are comments to the driver's compiler; the agent takes the marks out, and has
// the program compiled for `sm_90a`.
#define HOPPER(instruction) __asm__ volatile("//sm_90a " #instruction ";" : : : "memory")
#define FENCE HOPPER(fence.proxy.async.shared::cta)
#define SWIZZLED(at, span) ((at) ^ ((at) >> 3 & ((span) - 16)))
#define COPY(to, from, there) \
    __asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" \
        : : "r"((uint)(to)), "l"((ulong)(from)), "r"((there) ? 16 : 0) : "memory")
#define COPY_HALF(to, from, there) \
    __asm__ volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" \
        : : "r"((uint)(to)), "l"((ulong)(from)), "r"((there) ? 8 : 0) : "memory")
#if EIGHTS_A
#define COPY_A(to, from, there) COPY(to, from, there)
#else
#define COPY_A(to, from, there) COPY_HALF(to, from, there); COPY_HALF((to) + 8, (from) + 8, there)
#endif
#define COMMIT __asm__ volatile("cp.async.commit_group;" : : : "memory")
#define WAIT_FOR_COPIES __asm__ volatile("cp.async.wait_group %0;" : : "n"(STAGES - AHEAD - 1) : "memory")
#if AHEAD > 1
#define WAIT_FOR_PRODUCTS HOPPER(wgmma.wait_group.sync.aligned 1)
#else
#define WAIT_FOR_PRODUCTS HOPPER(wgmma.wait_group.sync.aligned 0)
#endif
#define WAIT_FOR_ALL_PRODUCTS HOPPER(wgmma.wait_group.sync.aligned 0)
#define SUM(f, j, n) sums##f[4 * j + n]
#define WARP_BARRIER __asm__ volatile("bar.warp.sync 0xffffffff;" : : : "memory")
