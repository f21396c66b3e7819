// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * hold_region DEVICE MEBIBYTES: register that much memory, after a write to all
 * of it, report that and wait.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "open_device.h"

int main(int argc, char **argv)
{
    struct ibv_context *context;
    struct ibv_pd *pd;
    size_t size;
    void *memory;

    if (argc != 3) {
        fprintf(stderr, "usage: hold_region DEVICE MEBIBYTES\n");
        return 1;
    }
    size = (size_t)atoi(argv[2]) << 20;
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    memset(memory, 0x55, size);
    context = open_device(argv[1]);
    pd = context ? ibv_alloc_pd(context) : NULL;
    if (!pd || !ibv_reg_mr(pd, memory, size, IBV_ACCESS_LOCAL_WRITE |
                           IBV_ACCESS_REMOTE_WRITE)) {
        perror("ibv_reg_mr");
        return 1;
    }
    printf("registered\n");
    fflush(stdout);
    pause();
    return 0;
}
