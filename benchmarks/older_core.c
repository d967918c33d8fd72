/* Preloaded into a process whose libraries have int3 in place of cpuid: answers as cpuid does, with
   the instructions after AVX2 left out where OLDER_CORE is set. Between count_begin and count_end
   it steps through every instruction and counts those of AVX-512, which begin with 0x62, and of
   AVX-VNNI. */
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <stdlib.h>
#include <ucontext.h>

#define TRAP_FLAG 0x100
/* Leaf 7 of cpuid: AVX-512 and what is encoded like it (GFNI, VAES), AMX. */
#define NEWER_EBX 0xdc230000u
#define NEWER_ECX 0x00005f42u
#define NEWER_EDX 0x03c0010cu

static long stepped, newer;
static int older;

static void on_trap(int signal, siginfo_t *info, void *context)
{
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *at = (const unsigned char *)r[REG_RIP];
    (void)signal;
    if (info->si_code == SI_KERNEL) { /* int3 */
        const unsigned leaf = (unsigned)r[REG_RAX], sub = (unsigned)r[REG_RCX];
        unsigned a, b, c, d;
        __cpuid_count(leaf, sub, a, b, c, d);
        if (older && leaf == 7) {
            b &= sub ? 0 : ~NEWER_EBX;
            c &= sub ? 0 : ~NEWER_ECX;
            d &= sub ? 0 : ~NEWER_EDX;
            a = sub ? 0 : a; /* AVX-VNNI and later ones */
        }
        r[REG_RAX] = a;
        r[REG_RBX] = b;
        r[REG_RCX] = c;
        r[REG_RDX] = d;
        return;
    }
    ++stepped;
    newer += at[0] == 0x62 || (at[0] == 0xc4 && (at[1] & 31) == 2 && (at[3] & 0xfc) == 0x50);
}

__attribute__((constructor)) static void begin(void)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    older = getenv("OLDER_CORE") != NULL;
    sigaction(SIGTRAP, &action, NULL);
}

void count_begin(void)
{
    stepped = newer = 0;
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | TRAP_FLAG);
}

/* Returns how many were of those; *all is how many there were. */
long count_end(long *all)
{
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~(unsigned long)TRAP_FLAG);
    *all = stepped;
    return newer;
}
