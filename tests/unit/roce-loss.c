/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * RC on a bad link: whatever faults the link has, memory is right to the byte
 * and each WQE completes once, in order, on both sides.
 */
#include "roce-flow.h"

typedef struct FaultCase {
    const char *name;
    LinkFaults faults;
    unsigned seeds;
    unsigned first_seed;
} FaultCase;

static const FaultCase fault_cases[] = {
    { "good", { 0 }, 8 },
    { "loss-1", { .loss = 100 }, 40 },
    /* With other seeds, a request may use up its 8 attempts. */
    { "loss-10", { .loss = 1000 }, 40, .first_seed = 40 },
    { "loss-20", { .loss = 2000 }, 12, .first_seed = 12 },
    { "dup-1", { .dup = 100 }, 20 },
    { "dup-20", { .dup = 2000 }, 40 },
    { "reorder-1", { .reorder = 100 }, 20 },
    { "reorder-20", { .reorder = 2000 }, 40 },
    { "corrupt-1", { .corrupt = 100 }, 20 },
    { "corrupt-10", { .corrupt = 1000 }, 20 },
    { "all-1", { 100, 100, 100, 100 }, 80 },
    { "all-5", { 500, 500, 500, 500 }, 80 },
};

/* Exchange requests, with SRQs and windows if @shared. */
static void exchange(const FaultCase *w, bool shared)
{
    LinkFaults faulty = { 0 };
    unsigned seed;

    for (seed = w->first_seed; seed < w->first_seed + w->seeds; seed++) {
        RdmaMtu mtu = RDMA_MTU_256 + seed % 5;
        const FlowSpec spec = {
            .seed = seed,
            .faults = w->faults,
            .faulty = &faulty,
            .mtu = mtu,
            .max_len = 5 * rdma_mtu_bytes(MIN(mtu, 3)) + 3,
            .timeout = 6,           /* 262 us */
            .srq = shared,
            .windows = shared,
            .round = LINK_MS,
        };

        flow_exchange(&spec);
    }
    link_assert_faults(&w->faults, &faulty);
}

static void test_exchange(gconstpointer data)
{
    exchange(data, false);
}

static void test_exchange_shared(gconstpointer data)
{
    exchange(data, true);
}

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < G_N_ELEMENTS(fault_cases); i++) {
        g_autofree char *path = g_strdup_printf("/roce/rc/exchange/%s",
                                                fault_cases[i].name);

        g_autofree char *shared = g_strdup_printf("/roce/rc/exchange-srq-mw/"
                                                  "%s", fault_cases[i].name);

        g_test_add_data_func(path, &fault_cases[i], test_exchange);
        g_test_add_data_func(shared, &fault_cases[i], test_exchange_shared);
    }
    return g_test_run();
}
