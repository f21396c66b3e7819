/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * GIDs. An address of the guest must be a GID of the host's port, because the
 * host's device sends only with its own GIDs. Either the port has it, or it is
 * added to the port's net device.
 *
 * Jobs read the host's table, which may take a system call for each entry. When
 * the host reports a change, a job looks up all GIDs of the guest again.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/qapi-events-rdma.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "qemu/timer.h"
#include "system/system.h"
#include "int.h"
#include "../trace.h"

#define MAX_HOST_GIDS 1024

/*
 * How long to wait until the host adds a GID for an address or removes it, and
 * how often to look
 */
#define APPEAR_MS 5000
#define VANISH_MS 250
#define POLL_US 2000

/* A GID of the host's port */
typedef struct HostGid {
    uint8_t gid[RDMA_GID_LEN];
    uint16_t vlan;
    uint8_t index;
    char netdev[IF_NAMESIZE];
} HostGid;

typedef struct HostGids {
    char *vlans;                    /* see verbs_vlans_read() */
    char netdev[IF_NAMESIZE];       /* of the port; empty: it has none */
    unsigned n;
    HostGid at[];
} HostGids;

/* The host's table */

static void host_gids_free(HostGids *t)
{
    if (t) {
        g_free(t->vlans);
        g_free(t);
    }
}

G_DEFINE_AUTOPTR_CLEANUP_FUNC(HostGids, host_gids_free)

static void host_gids_append(HostGids *t, const struct ibv_gid_entry *e)
{
    HostGid *g = &t->at[t->n];

    if (e->gid_type != IBV_GID_TYPE_ROCE_V2 || e->gid_index > UINT8_MAX) {
        return;
    }
    if (!if_indextoname(e->ndev_ifindex, g->netdev)) {
        *g->netdev = '\0';
    }
    memcpy(g->gid, e->gid.raw, RDMA_GID_LEN);
    g->index = e->gid_index;
    g->vlan = verbs_vlan_of(t->vlans, g->netdev);
    if (!*t->netdev && g->vlan == RDMA_NO_VLAN) {
        memcpy(t->netdev, g->netdev, IF_NAMESIZE);
    }
    t->n++;
}

/* Worker: read the RoCEv2 GIDs of the port. NULL and *@ret on failure. */
static HostGids *host_gids_read(RdmaVerbs *v, int *ret)
{
    g_autofree struct ibv_gid_entry *entries =
        g_new0(struct ibv_gid_entry, MAX_HOST_GIDS);
    ssize_t n = ibv_query_gid_table(v->dev.ctx, entries, MAX_HOST_GIDS, 0);
    HostGids *t;

    if (n < 0) {
        *ret = n;
        return NULL;
    }
    t = g_malloc0(sizeof(*t) + n * sizeof(t->at[0]));
    t->vlans = verbs_vlans_read();
    for (ssize_t i = 0; i < n; i++) {
        if (entries[i].port_num == v->port_num) {
            host_gids_append(t, &entries[i]);
        }
    }
    return t;
}

static const HostGid *host_gids_find(const HostGids *t, const VerbsGidKey *key)
{
    for (unsigned i = 0; i < t->n; i++) {
        if (!memcmp(t->at[i].gid, key->gid, RDMA_GID_LEN) &&
            t->at[i].vlan == key->vlan) {
            return &t->at[i];
        }
    }
    return NULL;
}

/* Events for management */

static void send_status_event(RdmaVerbs *v, const VerbsGidKey *key,
                              const char *netdev, bool status)
{
    g_autofree char *id = object_get_canonical_path(OBJECT(v));

    trace_rdma_verbs_gid_status(v, key->index, netdev, status);
    qapi_event_send_rdma_gid_status_changed(
        id, key->index, netdev, status, ldq_le_p(key->gid),
        ldq_le_p(key->gid + 8), key->vlan != RDMA_NO_VLAN, key->vlan);
}

/* Jobs: remove the address of a GID */

typedef struct DelJob {
    VerbsJob job;
    VerbsGid gid;
} DelJob;

static int del_work(VerbsJob *job)
{
    DelJob *j = container_of(job, DelJob, job);
    int64_t end = qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + VANISH_MS;
    int ret = verbs_netlink_del(j->gid.added_to, j->gid.key.gid);
    bool exists = !ret;

    /* The next look-up must not find a GID that is about to go. */
    while (exists && qemu_clock_get_ms(QEMU_CLOCK_REALTIME) < end) {
        int err;
        g_autoptr(HostGids) table = host_gids_read(job->v, &err);

        exists = table && host_gids_find(table, &j->gid.key);
        if (exists) {
            g_usleep(POLL_US);
        }
    }
    return ret;
}

static void del_done(VerbsJob *job)
{
    DelJob *j = container_of(job, DelJob, job);
    char text[INET6_ADDRSTRLEN];

    /* The address or its net device may be gone already. */
    if (job->ret && job->ret != -EADDRNOTAVAIL && job->ret != -ENODEV) {
        inet_ntop(AF_INET6, j->gid.key.gid, text, sizeof(text));
        warn_report("rdma-verbs: GID %s cannot be removed from the host's net "
                    "device: %s", text, strerror(-job->ret));
    }
}

static const VerbsJobOps del_ops = {
    .work = del_work,
    .done = del_done,
    .size = sizeof(DelJob),
};

/* The guest's table */

static bool is_same_gid(const VerbsGidKey *a, const VerbsGidKey *b)
{
    return a->vlan == b->vlan && !memcmp(a->gid, b->gid, RDMA_GID_LEN);
}

/* If another entry has the same GID, that one keeps the address. */
static bool pass_address_on(RdmaVerbs *v, const VerbsGid *g)
{
    for (uint32_t i = 0; i < v->parent_obj.limits.gid_table_len; i++) {
        VerbsGid *other = &v->gids[i];

        if (other->used && is_same_gid(&other->key, &g->key)) {
            other->added_to = g->added_to;
            return true;
        }
    }
    return false;
}

static bool gid_drop(RdmaVerbs *v, VerbsGid *g)
{
    if (!g->used) {
        return false;
    }
    g->used = false;
    if (g->added_to && !pass_address_on(v, g)) {
        DelJob *j = verbs_job_new(v, &del_ops, NULL);

        j->gid = *g;
        verbs_job_start(&j->job);
    }
    return true;
}

/* Jobs: look up all GIDs again */

typedef struct LookupJob {
    VerbsJob job;
    HostGids *table;
} LookupJob;

static int lookup_work(VerbsJob *job)
{
    LookupJob *j = container_of(job, LookupJob, job);
    int ret = 0;

    j->table = host_gids_read(job->v, &ret);
    return ret;
}

/* Returns whether the host's index of the GID has changed. */
static bool lookup_gid(RdmaVerbs *v, VerbsGid *g, const HostGids *table)
{
    const HostGid *h = host_gids_find(table, &g->key);
    int index = h ? h->index : VERBS_NO_GID;
    bool changed = index != g->host_index;
    bool appears = g->host_index == VERBS_NO_GID;

    g->host_index = index;
    if (h) {
        memcpy(g->netdev, h->netdev, IF_NAMESIZE);
    }
    if (changed && (!h || appears)) {
        send_status_event(v, &g->key, g->netdev, h);
    }
    return changed;
}

static void lookup_done(VerbsJob *job)
{
    LookupJob *j = container_of(job, LookupJob, job);
    RdmaVerbs *v = job->v;
    bool changed = false;

    v->gids_lookup_runs = false;
    v->gids_lookups++;
    if (v->gids_lookup_again) {
        verbs_gids_changed(v);
    }
    if (job->ret) {
        return;
    }
    for (uint32_t i = 0; i < v->parent_obj.limits.gid_table_len; i++) {
        if (v->gids[i].used) {
            changed |= lookup_gid(v, &v->gids[i], j->table);
        }
    }
    if (changed) {
        /* Address handles refer to entries of the host's table. */
        verbs_ahs_drop(v, NULL);
    }
    if (v->gid_refused && v->parent_obj.client_ops) {
        v->gid_refused = false;
        verbs_raise_event(v, RDMA_EVENT_GID_CHANGE, RDMA_PORT_NUM);
    }
}

static void lookup_free(VerbsJob *job)
{
    host_gids_free(container_of(job, LookupJob, job)->table);
}

static const VerbsJobOps lookup_ops = {
    .work = lookup_work,
    .done = lookup_done,
    .free = lookup_free,
    .size = sizeof(LookupJob),
};

void verbs_gids_changed(RdmaVerbs *v)
{
    v->gids_lookup_again = v->gids_lookup_runs;
    if (!v->gids_lookup_runs) {
        v->gids_lookup_runs = true;
        verbs_job_start(verbs_job_new(v, &lookup_ops, NULL));
    }
}

/* Jobs: add a GID of the guest */

typedef struct AddJob {
    VerbsJob job;
    VerbsGid gid;
    bool may_add;                   /* gid-mode=add */
    unsigned lookups;               /* RdmaVerbs.gids_lookups at the start */
    Error *err;                     /* the reason of a failure, or NULL */
} AddJob;

static int take_host_gid(AddJob *j, const HostGid *h)
{
    j->gid.host_index = h->index;
    memcpy(j->gid.netdev, h->netdev, IF_NAMESIZE);
    return 0;
}

static void remove_added_address(AddJob *j)
{
    if (j->gid.added_to) {
        verbs_netlink_del(j->gid.added_to, j->gid.key.gid);
        j->gid.added_to = 0;
    }
}

/* Worker: wait until the host has a GID for the address that was added. */
static int await_gid(AddJob *j)
{
    int64_t end = qemu_clock_get_ms(QEMU_CLOCK_REALTIME) + APPEAR_MS;
    int ret = 0;

    while (!qatomic_read(&j->job.cancelled)) {
        g_autoptr(HostGids) table = host_gids_read(j->job.v, &ret);
        const HostGid *h = table ? host_gids_find(table, &j->gid.key) : NULL;

        if (!table) {
            return ret;
        }
        if (h) {
            return take_host_gid(j, h);
        }
        if (qemu_clock_get_ms(QEMU_CLOCK_REALTIME) > end) {
            error_setg(&j->err, "the address was added to the host's net "
                       "device %s, but did not become a GID of RoCEv2 of port "
                       "%u of '%s'", j->gid.netdev, j->job.v->port_num,
                       j->job.v->ibdev);
            return -ETIMEDOUT;
        }
        g_usleep(POLL_US);
    }
    return -ECANCELED;
}

static int add_address(AddJob *j, const HostGids *table)
{
    uint32_t ifindex = if_nametoindex(table->netdev);
    int ret;

    if (!ifindex) {
        error_setg(&j->err, "port %u of '%s' has no net device in QEMU's "
                   "network namespace", j->job.v->port_num, j->job.v->ibdev);
        return -EPERM;
    }
    if (j->gid.key.vlan != RDMA_NO_VLAN) {
        ifindex = verbs_vlan_ifindex(table->vlans, table->netdev,
                                     j->gid.key.vlan);
        if (!ifindex || !if_indextoname(ifindex, j->gid.netdev)) {
            error_setg(&j->err, "the host's net device %s has no VLAN device "
                       "for VLAN %u: add one with ip link add link %s ... "
                       "type vlan id %u", table->netdev, j->gid.key.vlan,
                       table->netdev, j->gid.key.vlan);
            return -EPERM;
        }
    }
    ret = verbs_netlink_add(ifindex, j->gid.key.gid, &j->err);
    if (ret && ret != -EEXIST) {
        return ret;
    }
    /* An address that was there is not ours to remove. */
    j->gid.added_to = ret ? 0 : ifindex;
    ret = await_gid(j);
    if (ret) {
        remove_added_address(j);
    }
    return ret;
}

static int add_work(VerbsJob *job)
{
    AddJob *j = container_of(job, AddJob, job);
    int ret = 0;
    g_autoptr(HostGids) table = host_gids_read(job->v, &ret);
    const HostGid *h = table ? host_gids_find(table, &j->gid.key) : NULL;

    if (!table) {
        return ret;
    }
    if (h) {
        return take_host_gid(j, h);
    }
    memcpy(j->gid.netdev, table->netdev, IF_NAMESIZE);
    if (j->may_add) {
        return add_address(j, table);
    }
    error_setg(&j->err, "it is not one of RoCEv2 on port %u of '%s': give the "
               "host's net device %s the address of the guest, or use "
               "gid-mode=add", job->v->port_num, job->v->ibdev, j->gid.netdev);
    return -EPERM;
}

static void add_undo(VerbsJob *job)
{
    remove_added_address(container_of(job, AddJob, job));
}

static void add_done(VerbsJob *job)
{
    AddJob *j = container_of(job, AddJob, job);
    RdmaVerbs *v = job->v;
    char text[INET6_ADDRSTRLEN];

    trace_rdma_verbs_gid_add(v, j->gid.key.index, j->gid.netdev,
                             j->gid.added_to, job->ret ?: j->gid.host_index);
    if (!job->ret || job->ret == -ECANCELED) {
        return;
    }
    v->gid_refused = true;
    send_status_event(v, &j->gid.key, j->gid.netdev, false);
    if (j->err) {
        inet_ntop(AF_INET6, j->gid.key.gid, text, sizeof(text));
        warn_report_once_cond(&v->gid_warned, "rdma-verbs: the guest's GID %s "
                              "(VLAN %u) is refused: %s", text, j->gid.key.vlan,
                              error_get_pretty(j->err));
    }
}

static void add_take(VerbsJob *job, void *unused)
{
    AddJob *j = container_of(job, AddJob, job);
    RdmaVerbs *v = job->v;
    VerbsGid *g = &v->gids[j->gid.key.index];

    if (g->used && is_same_gid(&g->key, &j->gid.key)) {
        /* If the host has removed it meanwhile, this job has added it. */
        j->gid.added_to = j->gid.added_to ?: g->added_to;
        g->added_to = 0;
    }
    if (gid_drop(v, g)) {
        verbs_ahs_drop(v, NULL);
    }
    *g = j->gid;
    g->used = true;
    send_status_event(v, &g->key, g->netdev, true);
    if (j->lookups != v->gids_lookups) {
        /* The job may have read the table before a newer look-up. */
        verbs_gids_changed(v);
    }
}

static void add_free(VerbsJob *job)
{
    error_free(container_of(job, AddJob, job)->err);
}

static const VerbsJobOps add_ops = {
    .work = add_work,
    .undo = add_undo,
    .done = add_done,
    .take = add_take,
    .free = add_free,
    .size = sizeof(AddJob),
};

int verbs_gid_add(RdmaBackend *rb, uint32_t index,
                  const uint8_t gid[RDMA_GID_LEN], uint16_t vlan)
{
    RdmaVerbs *v = RDMA_BACKEND_VERBS(rb);
    AddJob *j;
    int ret;

    if (rdma_gid_is_multicast(gid)) {
        return -EINVAL;
    }
    j = verbs_job_command(v, &add_ops, v->gids, NULL, &ret);
    if (!j) {
        return ret;
    }
    j->gid.key = (VerbsGidKey) { .index = index, .vlan = vlan };
    memcpy(j->gid.key.gid, gid, RDMA_GID_LEN);
    j->may_add = v->gid_mode == RDMA_GID_MODE_ADD;
    j->lookups = v->gids_lookups;
    return verbs_job_begin(&j->job);
}

int verbs_gid_del(RdmaVerbs *v, uint32_t index)
{
    VerbsGid *g = &v->gids[index];

    if (!gid_drop(v, g)) {
        return -ENOENT;
    }
    verbs_ahs_drop(v, NULL);
    send_status_event(v, &g->key, g->netdev, false);
    return 0;
}

/* The table */

/* The process ends while the device exists: remove its addresses. */
static void at_exit(Notifier *n, void *opaque)
{
    RdmaVerbs *v = container_of(n, RdmaVerbs, gids_exit);

    if (v->gid_mode != RDMA_GID_MODE_ADD) {
        /* There are no addresses to remove. */
        return;
    }
    verbs_job_abandon(v);
    for (uint32_t i = 0; i < v->parent_obj.limits.gid_table_len; i++) {
        gid_drop(v, &v->gids[i]);
    }
    verbs_worker_drain(v);
}

void verbs_gids_init(RdmaVerbs *v)
{
    v->gids = g_new0(VerbsGid, v->parent_obj.limits.gid_table_len);
    v->gids_lookup_runs = v->gids_lookup_again = false;
    v->gid_refused = v->gid_warned = false;
    v->gids_exit.notify = at_exit;
    qemu_add_exit_notifier(&v->gids_exit);
}

void verbs_gids_free(RdmaVerbs *v)
{
    qemu_remove_exit_notifier(&v->gids_exit);
    g_clear_pointer(&v->gids, g_free);
}

void verbs_gids_reset(RdmaVerbs *v)
{
    for (uint32_t i = 0; i < v->parent_obj.limits.gid_table_len; i++) {
        if (gid_drop(v, &v->gids[i])) {
            send_status_event(v, &v->gids[i].key, v->gids[i].netdev, false);
        }
    }
    v->gid_refused = false;
    v->gids_lookup_again = false;
}
