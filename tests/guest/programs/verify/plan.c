/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The plan of an rdma_verify run: pure functions of the parameters. */
#include <string.h>
#include "verify.h"

static const char *const names[OP_COUNT] = {
    [OP_SEND] = "send",
    [OP_SEND_IMM] = "send_imm",
    [OP_WRITE] = "write",
    [OP_WRITE_IMM] = "write_imm",
    [OP_READ] = "read",
    [OP_FADD] = "fadd",
    [OP_CAS] = "cas",
};

/* A bijection that scatters its input (the finalizer of splitmix64). */
uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

void fill(void *buf, size_t len, uint64_t key)
{
    unsigned char *at = buf;
    uint64_t word;
    size_t n;

    for (; len; at += n, len -= n) {
        word = mix(key++);
        n = len < sizeof(word) ? len : sizeof(word);
        memcpy(at, &word, n);
    }
}

static uint64_t draw(const struct params *p, int who, uint32_t round,
                     uint32_t qp, uint32_t i, unsigned salt)
{
    uint64_t x = mix(p->seed ^ ((uint64_t)round << 32 | qp));

    return mix(x ^ ((uint64_t)i << 16 | salt << 1 | who));
}

struct plan plan_of(const struct params *p, int who, uint32_t round,
                    uint32_t qp, uint32_t i)
{
    struct plan plan = { 0 };
    uint64_t dice = draw(p, who, round, qp, i, 1);
    unsigned pick = dice % __builtin_popcount(p->ops);
    unsigned op;

    for (op = 0; op < OP_COUNT; op++) {
        if (p->ops & 1u << op && pick-- == 0) {
            break;
        }
    }
    plan.op = op;
    plan.len = p->size;
    if (p->vary) {
        plan.len = draw(p, who, round, qp, i, 2) % (p->size + 1ull);
    }
    if (op == OP_FADD || op == OP_CAS) {
        plan.len = sizeof(uint64_t);
    }
    plan.imm = i << 8 | (dice >> 40 & 0xff);
    plan.signalled = p->unsignalled < 2 || i % p->unsignalled == 0 ||
                     i == p->count - 1;
    plan.takes_receive = op == OP_SEND || op == OP_SEND_IMM ||
                         op == OP_WRITE_IMM;
    plan.key = draw(p, who, round, qp, i, 3);
    plan.operand = draw(p, who, round, qp, i, 4);
    plan.cas_fails = plan.operand % 4 == 0;
    return plan;
}

struct words words_of(const struct params *p, int who, uint32_t round,
                      uint32_t qp)
{
    return (struct words) {
        .counter = draw(p, who, round, qp, 0, 5),
        .swapped = draw(p, who, round, qp, 0, 6),
    };
}

uint64_t words_step(struct words *w, const struct plan *plan)
{
    uint64_t before;

    if (plan->op == OP_FADD) {
        before = w->counter;
        w->counter += plan->operand;
        return before;
    }
    before = w->swapped;
    if (!plan->cas_fails) {
        w->swapped = plan->operand;
    }
    return before;
}

const char *op_name(enum op op)
{
    return names[op];
}

uint32_t ops_parse(const char *list)
{
    uint32_t mask = 0;
    size_t n;
    unsigned op;

    for (; *list; list += n + (list[n] == ',')) {
        n = strcspn(list, ",");
        for (op = 0; op < OP_COUNT; op++) {
            if (strlen(names[op]) == n && !strncmp(names[op], list, n)) {
                mask |= 1u << op;
                break;
            }
        }
        if (op == OP_COUNT) {
            return 0;
        }
    }
    return mask;
}
