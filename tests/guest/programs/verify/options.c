/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of rdma_verify. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "verify.h"

static const char usage[] =
    "rdma_verify [options] [server address]\n"
    "  -d DEVICE  -g GID index  -p TCP port\n"
    "The client's say for both ends:\n"
    "  -t rc|uc|ud  -m MTU  -s size  -n messages per round\n"
    "  -r rounds (0: until the peer breaks)  -q queue pairs\n"
    "  -o send,send_imm,write,write_imm,read,fadd,cas\n"
    "  -e (wait for events)  -V (vary lengths)  -G pieces  -I inline bytes\n"
    "  -u n (signal every n-th)  -S send depth  -R receive depth\n"
    "  -M MiB of each region, over which the queue pairs are spread; takes 96 "
    "huge pages\n"
    "  -L percent (messages may be lost; of each queue pair, so many must "
    "arrive)\n"
    "  -T seconds  -x seed\n"
    "  -k acknowledgement timeout (14: 67 ms, 15: 134 ms, ...)  "
    "-y retries\n";

static uint32_t number(const char *text, uint32_t min, uint32_t max)
{
    unsigned int value;
    char rest;

    if (sscanf(text, "%u%c", &value, &rest) != 1 || value < min ||
        value > max) {
        fail("%s is not a number from %u to %u", text, min, max);
    }
    return value;
}

static const uint32_t all_ops[] = {
    [IBV_QPT_RC] = (1u << OP_COUNT) - 1,
    [IBV_QPT_UC] = 1u << OP_SEND | 1u << OP_SEND_IMM | 1u << OP_WRITE |
                   1u << OP_WRITE_IMM,
    [IBV_QPT_UD] = 1u << OP_SEND | 1u << OP_SEND_IMM,
};

const char *parse_options(int argc, char **argv, const char **device,
                          int *gid, const char **port)
{
    int c;

    while ((c = getopt(argc, argv,
                       "d:g:p:t:m:s:n:r:q:o:eVG:I:u:S:R:M:L:T:x:y:k:")) >= 0) {
        switch (c) {
        case 'd':
            *device = optarg;
            break;
        case 'g':
            *gid = number(optarg, 0, 255);
            break;
        case 'p':
            *port = optarg;
            break;
        case 't':
            par.type = !strcmp(optarg, "uc") ? IBV_QPT_UC :
                       !strcmp(optarg, "ud") ? IBV_QPT_UD : IBV_QPT_RC;
            break;
        case 'm':
            par.mtu = number(optarg, 256, 4096);
            break;
        case 's':
            par.size = number(optarg, 0, 64 << 20);
            break;
        case 'n':
            par.count = number(optarg, 1, 16384);
            break;
        case 'r':
            par.rounds = number(optarg, 0, 1000000);
            break;
        case 'q':
            par.qps = number(optarg, 1, MAX_QPS);
            break;
        case 'o':
            par.ops = ops_parse(optarg);
            if (!par.ops) {
                fail("no operations in %s", optarg);
            }
            break;
        case 'e':
            par.events = 1;
            break;
        case 'V':
            par.vary = 1;
            break;
        case 'G':
            par.pieces = number(optarg, 1, MAX_PIECES);
            break;
        case 'I':
            par.inlined = number(optarg, 0, 4096);
            break;
        case 'u':
            par.unsignalled = number(optarg, 0, 1024);
            break;
        case 'S':
            par.sq_depth = number(optarg, 1, 16384);
            break;
        case 'R':
            par.rq_depth = number(optarg, 1, 16384);
            break;
        case 'M':
            par.spread = number(optarg, 128, 1 << 20);
            break;
        case 'L':
            par.lossy = 1;
            par.min_arrived = number(optarg, 0, 100);
            break;
        case 'T':
            par.timeout = number(optarg, 1, 3600);
            break;
        case 'x':
            par.seed = number(optarg, 0, UINT32_MAX);
            break;
        case 'y':
            par.retries = number(optarg, 0, 7);
            break;
        case 'k':
            par.ack_timeout = number(optarg, 1, 31);
            break;
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
    if (!par.ops) {
        par.ops = all_ops[par.type];
    }
    if (par.ops & ~all_ops[par.type]) {
        fail("operations that the service does not have");
    }
    if (par.type == IBV_QPT_UD && par.size > par.mtu) {
        fail("datagrams larger than the MTU");
    }
    if (par.lossy && (par.type == IBV_QPT_RC || par.rounds != 1 ||
                      par.rq_depth < par.count ||
                      par.ops & ~(1u << OP_SEND_IMM | 1u << OP_WRITE_IMM))) {
        fail("-L wants uc or ud, one round, a receive for every message "
             "and immediate data");
    }
    if (expect_break() && (par.type != IBV_QPT_RC || par.unsignalled > 1)) {
        fail("-r 0 wants rc and signalled requests");
    }
    return optind < argc ? argv[optind] : NULL;
}
