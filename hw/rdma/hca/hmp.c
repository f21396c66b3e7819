/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The monitor's command "info rdma", which prints the results of query-rdma and
 * query-rdma-faults
 */
#include "qemu/osdep.h"
#include "monitor/hmp.h"
#include "monitor/monitor.h"
#include "qapi/error.h"
#include "qemu/module.h"
#include "qapi/qapi-commands-rdma.h"
#include "qapi/qapi-commands-rdma-fault.h"
#include "qobject/qdict.h"
#include "int.h"

static void print_counters(Monitor *mon, const RdmaCounters *counters)
{
    static const char *const names[RDMA_NUM_COUNTERS] = {
        [RDMA_COUNTER_TX_PACKETS] = "tx-packets",
        [RDMA_COUNTER_TX_BYTES] = "tx-bytes",
        [RDMA_COUNTER_RX_PACKETS] = "rx-packets",
        [RDMA_COUNTER_RX_BYTES] = "rx-bytes",
        [RDMA_COUNTER_LOOPBACK_PACKETS] = "loopback-packets",
        [RDMA_COUNTER_RX_ICRC_ERRORS] = "rx-icrc-errors",
        [RDMA_COUNTER_RX_MALFORMED] = "rx-malformed",
        [RDMA_COUNTER_RX_DROPPED] = "rx-dropped",
        [RDMA_COUNTER_RX_DUPLICATES] = "rx-duplicates",
        [RDMA_COUNTER_RX_OUT_OF_SEQUENCE] = "rx-out-of-sequence",
        [RDMA_COUNTER_RETRANSMITS] = "retransmits",
        [RDMA_COUNTER_TIMEOUTS] = "timeouts",
        [RDMA_COUNTER_RNR_NAKS_SENT] = "rnr-naks-sent",
        [RDMA_COUNTER_RNR_NAKS_RECEIVED] = "rnr-naks-received",
        [RDMA_COUNTER_NAKS_SENT] = "naks-sent",
        [RDMA_COUNTER_NAKS_RECEIVED] = "naks-received",
        [RDMA_COUNTER_BAD_PKEY] = "bad-pkey",
        [RDMA_COUNTER_BAD_QKEY] = "bad-qkey",
        [RDMA_COUNTER_TX_MCAST_PACKETS] = "tx-mcast-packets",
        [RDMA_COUNTER_RX_MCAST_PACKETS] = "rx-mcast-packets",
    };
    const uint64_t *values = (const uint64_t *)counters;

    monitor_printf(mon, "  counters:");
    for (int i = 0; i < RDMA_NUM_COUNTERS; i++) {
        if (values[i]) {
            monitor_printf(mon, " %s=%" PRIu64, names[i], values[i]);
        }
    }
    monitor_printf(mon, "\n");
}

static void print_device(Monitor *mon, const RdmaInfo *info)
{
    const RdmaObjectCounts *n = info->count;

    monitor_printf(mon, "%s: %s, driver %s\n", info->device ?: info->path,
                   info->backend->type, info->driver ? "running" : "not there");
    monitor_printf(mon, "  %s\n", info->backend->info);
    monitor_printf(mon, "  port: %s, mtu %u, mac %s\n",
                   info->port->active ? "active" : "down",
                   info->port->active_mtu, info->port->mac);
    monitor_printf(mon, "  objects: pd %u/%u, cq %u/%u, srq %u/%u, qp %u/%u, "
                   "mr %u/%u, mw %u/%u\n", n->pd->used, n->pd->max,
                   n->cq->used, n->cq->max, n->srq->used, n->srq->max,
                   n->qp->used, n->qp->max, n->mr->used, n->mr->max,
                   n->mw->used, n->mw->max);
    print_counters(mon, info->counters);
    monitor_printf(mon, "  errors of queue pairs: %" PRIu64 "\n",
                   info->qp_errors);
    for (RdmaGidInfoList *l = info->gids; l; l = l->next) {
        monitor_printf(mon, "  gid %u: %s", l->value->index, l->value->gid);
        if (l->value->has_vlan) {
            monitor_printf(mon, " vlan %u", l->value->vlan);
        }
        monitor_printf(mon, "\n");
    }
}

static void print_error(Monitor *mon, const RdmaQueuePairInfo *qp)
{
    const RdmaQueuePairError *error = qp->last_error;

    if (error->source == RDMA_ERROR_SOURCE_EVENT) {
        monitor_printf(mon, "    errors %" PRIu64 ", the last: event %s\n",
                       qp->errors,
                       RdmaQueuePairEvent_str(error->u.event.type));
        return;
    }
    monitor_printf(mon, "    errors %" PRIu64 ", the last: %s of %s, wr-id 0x%"
                   PRIx64 "\n", qp->errors,
                   RdmaCompletionStatus_str(error->u.completion.status),
                   RdmaCompletionOpcode_str(error->u.completion.opcode),
                   error->u.completion.wr_id);
}

static void print_detail(Monitor *mon, const RdmaQueuePairDetail *d)
{
    monitor_printf(mon, "    max-send-wr %u, max-recv-wr %u, max-send-sge %u, "
                   "max-recv-sge %u, max-inline-data %u%s\n", d->max_send_wr,
                   d->max_recv_wr, d->max_send_sge, d->max_recv_sge,
                   d->max_inline_data, d->direct ? ", direct" : "");
    if (d->dgid) {
        monitor_printf(mon, "    from gid %u to %s, path-mtu %u, timeout %u, "
                       "retry-cnt %u, rnr-retry %u\n", d->sgid_index, d->dgid,
                       d->path_mtu, d->timeout, d->retry_cnt, d->rnr_retry);
    }
    if (d->progress) {
        monitor_printf(mon, "    una-psn %u, next-psn %u, retries left %u, "
                       "rnr-retries left %u\n", d->progress->una_psn,
                       d->progress->next_psn, d->progress->retries,
                       d->progress->rnr_retries);
    }
    if (d->stats) {
        const RdmaQueuePairStats *s = d->stats;

        monitor_printf(mon, "    packets sent %" PRIu64 " received %" PRIu64
                       " looped back %" PRIu64 ", bytes sent %" PRIu64
                       " received %" PRIu64 ", wrong Q_Keys %" PRIu64 "\n",
                       s->tx_packets, s->rx_packets, s->loopback_packets,
                       s->tx_bytes, s->rx_bytes, s->bad_qkey);
        monitor_printf(mon, "    retransmits %" PRIu64 ", timeouts %" PRIu64
                       ", timeouts-late %" PRIu64 ", naks sent %" PRIu64
                       " received %" PRIu64 ", rnr-naks sent %" PRIu64
                       " received %" PRIu64 ", duplicates %" PRIu64
                       ", out of sequence %" PRIu64 "\n", s->retransmits,
                       s->timeouts, s->timeouts_late, s->naks_sent,
                       s->naks_received, s->rnr_naks_sent,
                       s->rnr_naks_received, s->rx_duplicates,
                       s->rx_out_of_sequence);
    }
}

static void print_qp(Monitor *mon, const RdmaQueuePairInfo *qp, bool detail)
{
    monitor_printf(mon, "  qp %u: %s %s", qp->qpn,
                   RdmaQueuePairType_str(qp->type),
                   RdmaQueuePairState_str(qp->state));
    if (qp->has_wire_qpn) {
        monitor_printf(mon, ", wire-qpn %u", qp->wire_qpn);
    }
    if (qp->has_dest_qpn) {
        monitor_printf(mon, ", to qp %u", qp->dest_qpn);
    }
    if (qp->has_sq_psn && qp->has_rq_psn) {
        monitor_printf(mon, ", sq-psn %u, rq-psn %u", qp->sq_psn, qp->rq_psn);
    }
    monitor_printf(mon, ", sends %u+%u, recvs %u+%u\n", qp->sends,
                   qp->sends_waiting, qp->recvs, qp->recvs_waiting);
    if (qp->last_error) {
        print_error(mon, qp);
    }
    if (detail) {
        print_detail(mon, qp->detail);
    }
}

static void print_faults(Monitor *mon, const char *path)
{
    g_autoptr(RdmaFaultInfoList) list = qmp_query_rdma_faults(path, NULL);

    for (RdmaFaultInfoList *l = list; l; l = l->next) {
        const RdmaFaultInfo *info = l->value;

        monitor_printf(mon, "  fault %s: %s, matches %" PRIu64 ", hits %"
                       PRIu64 "%s\n", info->fault->id,
                       RdmaFaultKind_str(info->fault->kind), info->matches,
                       info->hits, info->active ? "" : ", over");
    }
}

static void hmp_info_rdma(Monitor *mon, const QDict *qdict)
{
    const char *device = qdict_get_try_str(qdict, "device");
    bool has_qpn = qdict_haskey(qdict, "qpn");
    RdmaObjectKindList qps = { .value = RDMA_OBJECT_KIND_QP };
    RdmaObjectKindList gids = { .value = RDMA_OBJECT_KIND_GID, .next = &qps };
    bool lists = device && !has_qpn;
    g_autoptr(RdmaInfoList) list = NULL;
    Error *err = NULL;

    list = qmp_query_rdma(device, lists, lists ? &gids : NULL, has_qpn,
                          qdict_get_try_int(qdict, "qpn", 0), lists, lists,
                          false, 0, false, 0, &err);
    if (hmp_handle_error(mon, err)) {
        return;
    }
    if (!list) {
        monitor_printf(mon, "There are no RDMA devices\n");
    }
    for (RdmaInfoList *l = list; l; l = l->next) {
        uint32_t n = 0;

        print_device(mon, l->value);
        print_faults(mon, l->value->path);
        for (RdmaQueuePairInfoList *q = l->value->qps; q; q = q->next, n++) {
            print_qp(mon, q->value, has_qpn);
        }
        if (lists && n < l->value->count->qp->used) {
            monitor_printf(mon, "  and others, which query-rdma lists\n");
        }
    }
}

static void register_hmp(void)
{
    monitor_register_hmp("rdma", true, hmp_info_rdma);
}

type_init(register_hmp)
