/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * DCQCN, the reaction point: the rate of a QP whose packets meet congestion
 * (Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM
 * 2015, 3.2). A CNP reduces the rate. Time and sent bytes raise it again.
 *
 * There are no timers: the effect of time is computed when the QP sends. A QP
 * that is back at the line rate has no state and is not paced.
 */
#include <glib.h>
#include "queue/queue.h"

/* The parameters of the paper. *_PART divide the line rate. */
#define ALPHA_ONE       (1u << 16)
#define ALPHA_SHIFT     8           /* g is 1/256 */
#define ALPHA_NS        55000
#define INCREASE_NS     55000
#define INCREASE_BYTES  (10u << 20)
#define FAST_STAGES     5
#define ADDITIVE_PART   1000
#define HYPER_PART      100
#define MIN_PART        1000
/* After a pause of this length alpha counts as 0, to bound pass_time(). */
#define ALPHA_GONE_NS   (4000 * (int64_t)ALPHA_NS)

struct RoceDcqcn {
    uint32_t rate;                  /* kb/s */
    uint32_t target;                /* kb/s, which @rate approaches */
    uint32_t alpha;                 /* congestion estimate, 0..ALPHA_ONE */
    int64_t alpha_at;               /* ns, next decrease of @alpha */
    int64_t increase_at;            /* ns, next increase by time */
    uint32_t bytes;                 /* sent since the last increase by bytes */
    uint32_t time_stage;            /* increases by time since the last cut */
    uint32_t byte_stage;            /* increases by bytes since the last cut */
};

static void restart_clocks(RoceDcqcn *d, int64_t now)
{
    d->alpha_at = now + ALPHA_NS;
    d->increase_at = now + INCREASE_NS;
    d->bytes = 0;
    d->time_stage = 0;
    d->byte_stage = 0;
}

static void increase(RoceDcqcn *d, uint32_t line)
{
    uint32_t fewer = MIN(d->time_stage, d->byte_stage);

    if (fewer > FAST_STAGES) {
        d->target += (fewer - FAST_STAGES) * MAX(1, line / HYPER_PART);
    } else if (MAX(d->time_stage, d->byte_stage) > FAST_STAGES) {
        d->target += MAX(1, line / ADDITIVE_PART);
    }
    d->target = MIN(d->target, line);
    /* Round up, since otherwise the rate never reaches the target. */
    d->rate += (d->target - d->rate + 1) / 2;
}

static void pass_time(RoceDcqcn *d, uint32_t line, int64_t now)
{
    if (now - d->alpha_at > ALPHA_GONE_NS) {
        d->alpha = 0;
        d->alpha_at = now + ALPHA_NS;
    }
    for (; d->alpha_at <= now; d->alpha_at += ALPHA_NS) {
        d->alpha -= d->alpha >> ALPHA_SHIFT;
    }
    for (; d->increase_at <= now && d->rate < line;
         d->increase_at += INCREASE_NS) {
        d->time_stage++;
        increase(d, line);
    }
}

void roce_dcqcn_cut(RoceQp *qp, int64_t now)
{
    uint32_t line = qp->e->dcqcn_line;
    RoceDcqcn *d = qp->dcqcn;

    if (!line) {
        return;
    }
    if (!d) {
        d = qp->dcqcn = g_new0(RoceDcqcn, 1);
        d->rate = line;
        d->alpha = ALPHA_ONE;
    } else {
        pass_time(d, line, now);
    }
    d->target = d->rate;
    d->rate -= (uint64_t)d->rate * d->alpha / (2 * ALPHA_ONE);
    d->rate = MAX(d->rate, MAX(1, line / MIN_PART));
    d->alpha += (ALPHA_ONE - d->alpha) >> ALPHA_SHIFT;
    restart_clocks(d, now);
    /* Time in which the QP sent nothing must not allow a burst. */
    qp->s.sq.send_at = MAX(qp->s.sq.send_at, now);
}

void roce_dcqcn_sent(RoceQp *qp, uint32_t bytes, int64_t now)
{
    uint32_t line = qp->e->dcqcn_line;
    RoceDcqcn *d = qp->dcqcn;

    pass_time(d, line, now);
    d->bytes += bytes;
    if (d->bytes >= INCREASE_BYTES) {
        d->bytes = 0;
        d->byte_stage++;
        increase(d, line);
    }
    if (d->rate >= line) {
        roce_dcqcn_end(qp);
    }
}

uint32_t roce_dcqcn_rate(const RoceQp *qp)
{
    return qp->dcqcn ? qp->dcqcn->rate : 0;
}

void roce_dcqcn_end(RoceQp *qp)
{
    g_clear_pointer(&qp->dcqcn, g_free);
}
