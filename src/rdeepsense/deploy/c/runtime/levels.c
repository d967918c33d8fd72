/* Which levels this processor has, one bit for each: sse2, avx2, avxvnni and avx512 of x86 are 1,
   2, 4 and 8; neon, dotprod and i8mm of aarch64 are 16, 32 and 64. */
unsigned model_levels(void);

#if defined(__aarch64__)
#include <sys/auxv.h>

/* Linux's numbers of what there is; not every header names all of them. */
#define SECOND (1ul << 7 | 1ul << 8 | 1ul << 12) /* CRC32, atomics and RDM, of ARMv8.2 */
#define DOTPROD (1ul << 20)
#define I8MM (1ul << 13) /* in the second word */

unsigned model_levels(void)
{
    const unsigned long dot = SECOND | DOTPROD;
    if ((getauxval(AT_HWCAP) & dot) != dot) {
        return 16;
    }
    return getauxval(AT_HWCAP2) & I8MM ? 16 | 32 | 64 : 16 | 32;
}
#else
#include <cpuid.h>

unsigned model_levels(void)
{
    unsigned found = 1, a, b, c, d;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi2")) {
        found |= 2;
        if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1)) {
            found |= 4; /* AVX-VNNI, which not every compiler knows by name */
        }
        if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512cd") &&
            __builtin_cpu_supports("avx512vl")) {
            found |= 8;
        }
    }
    return found;
}
#endif
