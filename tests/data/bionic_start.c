// What Android's crtbegin_dynamic does, for programs that are linked without an NDK.
int main(int argc, char** argv, char** environment);
void __libc_init(void* stack, void (*on_exit)(void), int (*program)(int, char**, char**), const void* structors);

static void (**const no_structors[4])(void);

__attribute__((used)) static void begin(void* stack) { __libc_init(stack, 0, main, no_structors); }

__asm__(".globl _start\n_start: mov x0, sp\n b begin");
