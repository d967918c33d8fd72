/* A QEMU plugin that counts the instructions a program executes. The few declarations it needs are
   here, because distributions do not all ship qemu-plugin.h. */
#include <stdint.h>
#include <stdio.h>

typedef uint64_t id;
typedef struct block block;
int qemu_plugin_version = API;
void qemu_plugin_register_vcpu_tb_trans_cb(id, void (*)(id, block *));
void qemu_plugin_register_vcpu_tb_exec_cb(block *, void (*)(unsigned, void *), int flags, void *);
void qemu_plugin_register_atexit_cb(id, void (*)(id, void *), void *);
size_t qemu_plugin_tb_n_insns(const block *);
void qemu_plugin_outs(const char *);

static uint64_t total;

static void executed(unsigned cpu, void *instructions)
{
    (void)cpu;
    total += (uintptr_t)instructions;
}

static void translated(id self, block *found)
{
    (void)self;
    qemu_plugin_register_vcpu_tb_exec_cb(found, executed, 0,
                                         (void *)(uintptr_t)qemu_plugin_tb_n_insns(found));
}

static void finished(id self, void *nothing)
{
    char text[40];
    (void)self;
    (void)nothing;
    sprintf(text, "instructions %llu\n", (unsigned long long)total);
    qemu_plugin_outs(text);
}

int qemu_plugin_install(id self, const void *machine, int argc, char **argv)
{
    (void)machine;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(self, translated);
    qemu_plugin_register_atexit_cb(self, finished, NULL);
    return 0;
}
