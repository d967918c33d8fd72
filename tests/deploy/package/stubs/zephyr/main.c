/* Two models in one firmware. */
#include <zephyr/kernel.h>

#include <gait.h>
#include <tank.h>

static float scratch[(GAIT_SCRATCH_BYTES + TANK_SCRATCH_BYTES + 3) / 4];

int main(void)
{
    static float window[GAIT_INPUTS], row[TANK_INPUTS];
    float probs[GAIT_OUTPUTS], mean[TANK_OUTPUTS], std[TANK_OUTPUTS];
    window[0] = row[0] = 1e30f;
    printk("gait %d, ", gait_predict(window, probs, scratch) == GAIT_OUT_OF_RANGE);
    printk("tank %d\n", tank_predict(row, mean, std, scratch) == TANK_OUT_OF_RANGE);
    return 0;
}
