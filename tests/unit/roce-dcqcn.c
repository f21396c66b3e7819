/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rate of a queue pair that meets congestion, compared with a model of the
 * paper (Zhu et al., SIGCOMM 2015, 3.2) in floating point.
 */
#include "roce-link.h"
#include "queue/queue.h"

#define STEP_NS 55000               /* of alpha, and of increases by time */
#define STEP_BYTES (10 << 20)       /* of increases by bytes */
#define FAST 5                      /* increases of fast recovery */
#define TICK_NS 10000               /* between packets */

typedef struct Model {
    double line, rate, target, alpha;
    int64_t alpha_at, increase_at, bytes;
    unsigned by_time, by_bytes;
} Model;

static Model model_new(double line)
{
    return (Model) { .line = line, .rate = line, .target = line, .alpha = 1 };
}

static void model_increase(Model *m)
{
    unsigned fewer = MIN(m->by_time, m->by_bytes);

    if (fewer > FAST) {
        m->target += (fewer - FAST) * MAX(1, m->line / 100);
    } else if (MAX(m->by_time, m->by_bytes) > FAST) {
        m->target += MAX(1, m->line / 1000);
    }
    m->target = MIN(m->target, m->line);
    m->rate = (m->rate + m->target) / 2;
}

static void model_pass_time(Model *m, int64_t now)
{
    for (; m->alpha_at <= now; m->alpha_at += STEP_NS) {
        m->alpha *= 255. / 256;
    }
    for (; m->increase_at <= now; m->increase_at += STEP_NS) {
        m->by_time++;
        model_increase(m);
    }
}

static void model_cut(Model *m, int64_t now)
{
    m->target = m->rate;
    m->rate = MAX(m->rate * (1 - m->alpha / 2), MAX(1, m->line / 1000));
    m->alpha += (1 - m->alpha) / 256;
    m->alpha_at = m->increase_at = now + STEP_NS;
    m->bytes = m->by_time = m->by_bytes = 0;
}

static void model_sent(Model *m, uint32_t bytes)
{
    m->bytes += bytes;
    if (m->bytes >= STEP_BYTES) {
        m->bytes = 0;
        m->by_bytes++;
        model_increase(m);
    }
}

/*
 * Compare the rates, with a tolerance for rounding. Without DCQCN state, the QP
 * sends at the line rate.
 */
static void compare(const RoceQp *qp, const Model *m)
{
    double rate = roce_dcqcn_rate(qp) ?: m->line;

    g_assert_cmpfloat(ABS(rate - m->rate), <=, m->line / 500 + 2);
}

/* A number of cuts, and traffic after each */
typedef struct Phase {
    unsigned cuts;                  /* TICK_NS apart */
    unsigned ticks;                 /* of traffic at the rate of the QP */
    int64_t idle_ns;
} Phase;

typedef struct Case {
    const char *name;
    uint32_t line;                  /* kb/s */
    Phase phases[4];
} Case;

static const Case cases[] = {
    { "one-cut", 10000000, { { 1, 100, 0 } } },
    { "minimum-rate", 10000000, { { 40, 200, 0 } } },
    /*
     * The second target is below the line rate; time alone lets the rate reach
     * it.
     */
    { "additive", 10000000, { { 2, 4000, 0 } } },
    { "hyper", 200000000, { { 3, 1500, 0 }, { 1, 400, 0 } } },
    { "repeated-cuts", 40000000,
      { { 1, 20, 0 }, { 1, 50, 0 }, { 1, 10, 0 }, { 2, 200, 0 } } },
    { "alpha-falls-while-idle", 10000000,
      { { 8, 0, 20000000 }, { 2, 100, 0 } } },
    { "alpha-reaches-0", 10000000,
      { { 8, 0, 400000000 }, { 2, 100, 0 } } },
    { "slow-line", 800, { { 3, 2000, 0 } } },
};

static void test_as_the_model(gconstpointer data)
{
    const Case *c = data;
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RoceQp *qp = roce_qp_find(p.a->e, p.aq);
    Model m = model_new(c->line);
    int64_t now = 1000;
    bool begun = false;

    roce_set_dcqcn(p.a->e, c->line);
    for (unsigned i = 0; i < G_N_ELEMENTS(c->phases); i++) {
        const Phase *phase = &c->phases[i];

        for (unsigned n = 0; n < phase->cuts; n++, now += TICK_NS) {
            if (begun) {
                model_pass_time(&m, now);
            }
            roce_dcqcn_cut(qp, now);
            model_cut(&m, now);
            begun = true;
            compare(qp, &m);
        }
        for (unsigned n = 0; n < phase->ticks; n++, now += TICK_NS) {
            uint32_t bytes = m.rate * TICK_NS / 8e6;

            if (!roce_dcqcn_rate(qp)) {
                /* The QP is back at the line rate and has no DCQCN state. */
                m = model_new(c->line);
                begun = false;
                break;
            }
            roce_dcqcn_sent(qp, bytes, now);
            model_pass_time(&m, now);
            model_sent(&m, bytes);
            compare(qp, &m);
        }
        now += phase->idle_ns;
    }
    link_pair_free(&p);
}

/* Old congestion does not reduce the rate, not even by rounding. */
static void test_old_congestion_is_forgotten(void)
{
    const uint32_t line = 1000000000;
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RoceQp *qp = roce_qp_find(p.a->e, p.aq);

    roce_set_dcqcn(p.a->e, line);
    roce_dcqcn_cut(qp, 1000);
    g_assert_cmpuint(roce_dcqcn_rate(qp), ==, line / 2);
    roce_dcqcn_cut(qp, 1000 + 5000 * (int64_t)STEP_NS);
    g_assert_cmpuint(roce_dcqcn_rate(qp), ==, line);
    link_pair_free(&p);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/roce/dcqcn/%s",
                                                cases[i].name);

        g_test_add_data_func(path, &cases[i], test_as_the_model);
    }
    g_test_add_func("/roce/dcqcn/old-congestion-is-forgotten",
                    test_old_congestion_is_forgotten);
    return g_test_run();
}
