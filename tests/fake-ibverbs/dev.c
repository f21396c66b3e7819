/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The double of libibverbs: the device, its port and its addresses.
 */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "internal.h"

static struct ibv_device device = {
    .node_type = IBV_NODE_CA,
    .transport_type = IBV_TRANSPORT_IB,
    .name = FAKE_IBVERBS_DEVICE,
    .dev_name = "uverbs0",
    .dev_path = "/sys/class/infiniband_verbs/uverbs0",
    .ibdev_path = "/sys/class/infiniband/" FAKE_IBVERBS_DEVICE,
};

void fake_device_set_sysfs(const char *path)
{
    g_strlcpy(device.ibdev_path, path, sizeof(device.ibdev_path));
}

void fake_device_init(void)
{
    fake.live = g_hash_table_new(NULL, NULL);
    fake.memlock = UINT64_MAX;
    fake.attr = (struct ibv_device_attr) {
        .fw_ver = "1.0",
        .node_guid = cpu_to_be64(0x0202c9fffe001234),
        .sys_image_guid = cpu_to_be64(0x0202c9fffe001234),
        .max_mr_size = UINT64_MAX,
        .page_size_cap = 0xfffff000,
        .max_qp = 1024,
        .max_qp_wr = 4096,
        .device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN |
            IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_PORT_ACTIVE_EVENT |
            IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_BAD_QKEY_CNTR |
            IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_MEM_WINDOW |
            IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS,
        .max_sge = 16,
        .max_sge_rd = 16,
        .max_cq = 1024,
        .max_cqe = 32767,
        .max_mr = 4096,
        .max_pd = 1024,
        .max_qp_rd_atom = 16,
        .max_res_rd_atom = 16384,
        .max_qp_init_rd_atom = 16,
        .atomic_cap = IBV_ATOMIC_HCA,
        .max_mw = 4096,
        .max_mcast_grp = 64,
        .max_mcast_qp_attach = 8,
        .max_total_mcast_qp_attach = 512,
        .max_ah = 1024,
        .max_srq = 256,
        .max_srq_wr = 4096,
        .max_srq_sge = 16,
        .max_pkeys = 1,
        .local_ca_ack_delay = 15,
        .phys_port_cnt = 1,
    };
    fake.port = (struct ibv_port_attr) {
        .state = IBV_PORT_ACTIVE,
        .max_mtu = IBV_MTU_4096,
        .active_mtu = IBV_MTU_4096,
        .gid_tbl_len = FAKE_IBVERBS_GIDS,
        .port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
        .max_msg_sz = 0x40000000,
        .pkey_tbl_len = 1,
        .max_vl_num = 1,
        .active_width = 2,          /* 4X */
        .active_speed = 32,         /* EDR */
        .phys_state = 5,            /* LinkUp */
        .link_layer = IBV_LINK_LAYER_ETHERNET,
    };
}

struct ibv_device **ibv_get_device_list(int *num_devices)
{
    int err = fake_begin("get_device_list");
    int n = fake.gone ? 0 : 1;
    struct ibv_device **list = g_new0(struct ibv_device *, 2);

    list[0] = n ? &device : NULL;
    if (num_devices) {
        *num_devices = err ? 0 : n;
    }
    if (err) {
        g_free(list);
    }
    return fake_end_ptr("get_device_list", err, list, "%d", n);
}

void ibv_free_device_list(struct ibv_device **list)
{
    g_free(list);
}

const char *ibv_get_device_name(struct ibv_device *dev)
{
    return dev->name;
}

int ibv_get_device_index(struct ibv_device *dev)
{
    return 0;
}

__be64 ibv_get_device_guid(struct ibv_device *dev)
{
    return fake.attr.node_guid;
}

static int query_port(struct ibv_context *context, uint8_t port_num,
                      struct ibv_port_attr *attr, size_t size)
{
    int err = fake_alive(context, fake_begin("query_port"));

    if (!err && port_num != 1) {
        err = EINVAL;
    }
    if (!err) {
        memset(attr, 0, size);
        memcpy(attr, &fake.port, MIN(size, sizeof(fake.port)));
    }
    return fake_end("query_port", err, "port=%u", port_num);
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *context, uint8_t port_num,
                   struct _compat_ibv_port_attr *attr)
{
    return query_port(context, port_num, (struct ibv_port_attr *)attr,
                      offsetof(struct ibv_port_attr, port_cap_flags2));
}

int ibv_query_device(struct ibv_context *context,
                     struct ibv_device_attr *attr)
{
    int err = fake_alive(context, fake_begin("query_device"));

    if (!err) {
        *attr = fake.attr;
    }
    return fake_end("query_device", err, "%s", "");
}

static int query_device_ex(struct ibv_context *context,
                           const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t size)
{
    int err = fake_alive(context, fake_begin("query_device_ex"));

    if (!err) {
        memset(attr, 0, size);
        attr->orig_attr = fake.attr;
        attr->device_cap_flags_ex = fake.attr.device_cap_flags;
    }
    return fake_end("query_device_ex", err, "%s", "");
}

struct ibv_context *ibv_open_device(struct ibv_device *dev)
{
    int err = fake_begin("open_device");
    FakeContext *ctx = NULL;

    if (!err && fake.gone) {
        err = ENODEV;
    }
    if (!err) {
        ctx = fake_new(FAKE_CONTEXT, sizeof(*ctx));
        if (!fake_fifo_init(&ctx->async)) {
            err = errno;
            fake_free(ctx);
        }
    }
    if (!err) {
        ctx->v.sz = sizeof(ctx->v);
        ctx->v.create_qp_ex = fake_create_qp_ex;
        ctx->v.query_port = query_port;
        ctx->v.query_device_ex = query_device_ex;
        ctx->v.get_srq_num = fake_get_srq_num;
        ctx->v.context = (struct ibv_context) {
            .device = dev,
            .cmd_fd = -1,
            .async_fd = ctx->async.fd,
            .num_comp_vectors = 1,
            .abi_compat = __VERBS_ABI_IS_EXTENDED,
            .ops = {
                .alloc_mw = fake_alloc_mw,
                .bind_mw = fake_bind_mw,
                .dealloc_mw = fake_dealloc_mw,
                .poll_cq = fake_poll_cq,
                .req_notify_cq = fake_req_notify_cq,
                .post_srq_recv = fake_post_srq_recv,
                .post_send = fake_post_send,
                .post_recv = fake_post_recv,
            },
        };
        pthread_mutex_init(&ctx->v.context.mutex, NULL);
    }
    return fake_end_ptr("open_device", err, err ? NULL : &ctx->v.context,
                        "%s", dev->name);
}

int ibv_close_device(struct ibv_context *context)
{
    int err = fake_begin("close_device");
    FakeContext *ctx = fake_context_of(context);

    if (!err) {
        fake_fifo_clear(&ctx->async, g_free);
        pthread_mutex_destroy(&context->mutex);
        fake_free(ctx);
    }
    return fake_end("close_device", err, "%s", "") ? -1 : 0;
}

static bool gid_used(const struct ibv_gid_entry *entry)
{
    static const union ibv_gid zero;

    return memcmp(&entry->gid, &zero, sizeof(zero));
}

int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
                  union ibv_gid *gid)
{
    int err = fake_alive(context, fake_begin("query_gid"));

    if (!err && (port_num != 1 || index < 0 || index >= FAKE_IBVERBS_GIDS)) {
        err = EINVAL;
    }
    if (!err) {
        *gid = fake.gid[index].gid;
    }
    errno = fake_end("query_gid", err, "index=%d", index);
    return err ? -1 : 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
                      uint32_t gid_index, struct ibv_gid_entry *entry,
                      uint32_t flags, size_t entry_size)
{
    int err = fake_alive(context, fake_begin("query_gid_ex"));

    if (!err && (port_num != 1 || gid_index >= FAKE_IBVERBS_GIDS || flags)) {
        err = EINVAL;
    }
    if (!err && !gid_used(&fake.gid[gid_index])) {
        err = ENODATA;
    }
    if (!err) {
        memcpy(entry, &fake.gid[gid_index],
               MIN(entry_size, sizeof(*entry)));
    }
    return fake_end("query_gid_ex", err, "index=%u", gid_index);
}

ssize_t _ibv_query_gid_table(struct ibv_context *context,
                             struct ibv_gid_entry *entries,
                             size_t max_entries, uint32_t flags,
                             size_t entry_size)
{
    int err = fake_alive(context, fake_begin("query_gid_table"));
    size_t n = 0;

    for (int i = 0; !err && i < FAKE_IBVERBS_GIDS; i++) {
        if (!gid_used(&fake.gid[i])) {
            continue;
        }
        if (n == max_entries) {
            err = EINVAL;
            break;
        }
        memcpy((uint8_t *)entries + n++ * entry_size, &fake.gid[i],
               MIN(entry_size, sizeof(fake.gid[i])));
    }
    fake_end("query_gid_table", err, "%zu", n);
    return err ? -err : n;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index,
                   __be16 *pkey)
{
    int err = fake_alive(context, fake_begin("query_pkey"));

    if (!err && (port_num != 1 || index)) {
        err = EINVAL;
    }
    if (!err) {
        *pkey = cpu_to_be16(0xffff);
    }
    errno = fake_end("query_pkey", err, "index=%d", index);
    return err ? -1 : 0;
}

bool fake_is_local(const union ibv_gid *gid)
{
    for (int i = 0; i < FAKE_IBVERBS_GIDS; i++) {
        if (gid_used(&fake.gid[i]) &&
            !memcmp(&fake.gid[i].gid, gid, sizeof(*gid))) {
            return true;
        }
    }
    return false;
}

bool fake_gid_set(uint32_t index)
{
    return index < FAKE_IBVERBS_GIDS && gid_used(&fake.gid[index]);
}

/*
 * The kernel frees all objects, but leaves descriptors for the process to close
 */
void fake_device_gone(void)
{
    GList *all;

    fake_event(IBV_EVENT_DEVICE_FATAL, NULL, NULL);
    fake.gone = true;
    fake.count[FAKE_MCAST] = 0;
    for (FakeKind kind = 0; kind < FAKE_KINDS; kind++) {
        all = fake_all(kind);
        for (GList *l = all; l; l = l->next) {
            if (kind == FAKE_CONTEXT) {
                ((FakeContext *)l->data)->dead = true;
            } else if (kind != FAKE_CHANNEL) {
                fake_drop(l->data);
            }
            if (kind == FAKE_MR) {
                fake_unpin(l->data);
            }
        }
        g_list_free(all);
    }
}
