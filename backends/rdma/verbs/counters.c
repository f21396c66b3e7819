/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counters of the host's port, from sysfs and from its attributes. A job reads
 * them when the driver asks, because the host's device may have to ask its
 * firmware. They count for all users of the port, since the guest's last reset.
 */
#include "qemu/osdep.h"
#include "qemu/cutils.h"
#include "int.h"

/* IBTA 16.1.3.5: data is counted in units of four octets */
#define PMA_DATA_UNIT 4

#define NAMES(...) (const char *const[]) { __VA_ARGS__, NULL }

/*
 * Names depend on the host's driver, and the first file that exists is used.
 * Those in hw_counters are of rxe, mlx5, bnxt_re and virtio-rdma.
 */
static const struct {
    uint8_t counter;
    const char *const *hw;          /* files in hw_counters, then NULL */
    const char *pma;                /* file in counters, or NULL */
    uint8_t unit;                   /* of @pma; 0: one */
} sources[] = {
    { RDMA_COUNTER_TX_PACKETS, NAMES("sent_pkts", "tx_pkts", "tx_packets"),
      "port_xmit_packets" },
    { RDMA_COUNTER_TX_BYTES, NAMES("tx_bytes"),
      "port_xmit_data", PMA_DATA_UNIT },
    { RDMA_COUNTER_RX_PACKETS, NAMES("rcvd_pkts", "rx_pkts", "rx_packets"),
      "port_rcv_packets" },
    { RDMA_COUNTER_RX_BYTES, NAMES("rx_bytes"),
      "port_rcv_data", PMA_DATA_UNIT },
    { RDMA_COUNTER_LOOPBACK_PACKETS, NAMES("loopback_packets") },
    { RDMA_COUNTER_RX_ICRC_ERRORS, NAMES("rx_icrc_encapsulated",
                                         "rx_icrc_errors") },
    { RDMA_COUNTER_RX_MALFORMED, NAMES("rx_malformed"), "port_rcv_errors" },
    { RDMA_COUNTER_RX_DROPPED, NAMES("rx_dropped") },
    { RDMA_COUNTER_RX_DUPLICATES, NAMES("duplicate_request",
                                        "rx_duplicates") },
    { RDMA_COUNTER_RX_OUT_OF_SEQUENCE, NAMES("out_of_seq_request",
                                             "out_of_sequence",
                                             "rx_out_of_sequence") },
    { RDMA_COUNTER_RETRANSMITS, NAMES("completer_retry_err", "to_retransmits",
                                      "retransmits") },
    { RDMA_COUNTER_TIMEOUTS, NAMES("local_ack_timeout_err", "timeouts") },
    { RDMA_COUNTER_RNR_NAKS_SENT, NAMES("send_rnr_err", "out_of_buffer",
                                        "rnr_naks_sent") },
    { RDMA_COUNTER_RNR_NAKS_RECEIVED, NAMES("rcvd_rnr_err",
                                            "rnr_nak_retry_err",
                                            "rnr_naks_rcvd",
                                            "rnr_naks_received") },
    { RDMA_COUNTER_NAKS_SENT, NAMES("naks_sent") },
    { RDMA_COUNTER_NAKS_RECEIVED, NAMES("rcvd_seq_err", "packet_seq_err",
                                        "seq_err_naks_rcvd",
                                        "naks_received") },
    { RDMA_COUNTER_TX_MCAST_PACKETS, NAMES("tx_mcast_packets"),
      "multicast_xmit_packets" },
    { RDMA_COUNTER_RX_MCAST_PACKETS, NAMES("rx_mcast_packets"),
      "multicast_rcv_packets" },
};

typedef struct CountersJob {
    VerbsJob job;
    uint64_t value[RDMA_NUM_COUNTERS];
} CountersJob;

/* Worker */

static bool read_file(RdmaVerbs *v, const char *dir, const char *name,
                      uint64_t *value)
{
    g_autofree char *path = g_strdup_printf(
        "%s/ports/%u/%s/%s", v->dev.ctx->device->ibdev_path, v->port_num, dir,
        name);
    g_autofree char *text = NULL;

    return g_file_get_contents(path, &text, NULL, NULL) &&
           qemu_strtou64(g_strstrip(text), NULL, 0, value) == 0;
}

static uint64_t read_counter(RdmaVerbs *v, size_t i)
{
    uint64_t value = 0;

    for (int n = 0; sources[i].hw[n]; n++) {
        if (read_file(v, "hw_counters", sources[i].hw[n], &value)) {
            return value;
        }
    }
    if (sources[i].pma &&
        read_file(v, "counters", sources[i].pma, &value)) {
        return value * MAX(sources[i].unit, 1);
    }
    return 0;
}

static int work(VerbsJob *job)
{
    CountersJob *j = container_of(job, CountersJob, job);
    RdmaVerbs *v = job->v;
    struct ibv_port_attr attr = {};

    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        j->value[sources[i].counter] = read_counter(v, i);
    }
    if (ibv_query_port(v->dev.ctx, v->port_num, &attr) == 0) {
        j->value[RDMA_COUNTER_BAD_PKEY] = attr.bad_pkey_cntr;
        j->value[RDMA_COUNTER_BAD_QKEY] = attr.qkey_viol_cntr;
    }
    return 0;
}

/* The driver asks */

static void take(VerbsJob *job, void *out)
{
    CountersJob *j = container_of(job, CountersJob, job);
    RdmaVerbs *v = job->v;

    for (int i = 0; i < RDMA_NUM_COUNTERS; i++) {
        /* The host may have reset its counter. */
        v->counters[i] = j->value[i] - MIN(v->counters_base[i], j->value[i]);
    }
}

static const VerbsJobOps update_ops = {
    .work = work,
    .take = take,
    .size = sizeof(CountersJob),
};

static int update_counters(RdmaBackend *rb)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    VerbsJob *job;
    int ret;

    job = verbs_job_command(v, &update_ops, v->counters, NULL, &ret);
    return job ? verbs_job_begin(job) : ret;
}

static int query_counters(RdmaBackend *rb, uint32_t qpn, uint64_t *values)
{
    const RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);

    if (qpn != RDMA_NO_QPN) {
        return -ENOENT;
    }
    for (size_t i = 0; i < RDMA_NUM_COUNTERS; i++) {
        values[i] += v->counters[i];
    }
    return 0;
}

/* Reset */

static void base_done(VerbsJob *job)
{
    CountersJob *j = container_of(job, CountersJob, job);

    memcpy(job->v->counters_base, j->value, sizeof(j->value));
}

static const VerbsJobOps base_ops = {
    .work = work,
    .done = base_done,
    .size = sizeof(CountersJob),
};

void verbs_counters_reset(RdmaVerbs *v)
{
    memset(v->counters, 0, sizeof(v->counters));
    /* This job precedes that of the next update. */
    verbs_job_start(verbs_job_new(v, &base_ops, NULL));
}

void verbs_counters_class_init(RdmaBackendClass *rbc)
{
    rbc->update_counters = update_counters;
    rbc->query_counters = query_counters;
}
