// Of a 16 x 8 sum four neighbours have rows i and i + 8, each of them columns 2 j and 2 j + 1; of the left operand the
// same, and the columns 8 later; of the right one rows 2 j, 2 j + 1, 2 j + 8 and 2 j + 9 of column i (`mma.m16n8k16`).
#define EXCHANGE(to, v, mask) \
    __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(to) : "f"(v), "n"(mask))
#define EXP2(a) native_exp2(a)
uint TWO_HALVES(float a, float b) {
    uint both;
    __asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(b), "f"(a));
    return both;
}
