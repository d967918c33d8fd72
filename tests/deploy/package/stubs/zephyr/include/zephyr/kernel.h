#include <stdio.h>

#define printk printf
