/* Which levels of x86 this processor has, one bit for each. */
#include <cpuid.h>

unsigned model_levels(void);
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
