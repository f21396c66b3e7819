/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The double of libibverbs: commands of the test, see fake-ibverbs.h. */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "qemu/host-utils.h"
#include <arpa/inet.h>
#include "internal.h"

typedef struct Words {
    char **at;                      /* the next word; NULL at the end */
    GString *out;
} Words;

static const char *next(Words *w)
{
    return *w->at ? *w->at++ : NULL;
}

static bool next_is(Words *w, const char *word)
{
    if (*w->at && !strcmp(*w->at, word)) {
        w->at++;
        return true;
    }
    return false;
}

static bool number_of(const char *word, uint64_t *value)
{
    char *end;

    if (!word || !g_ascii_isxdigit(*word)) {
        return false;
    }
    *value = g_ascii_strtoull(word, &end, 0);
    return !*end;
}

static bool next_number(Words *w, uint64_t *value)
{
    return number_of(next(w), value);
}

/* Each command returns an error message, or NULL. */

static const char *do_fail(Words *w)
{
    const char *verb = next(w);
    const char *name = next(w);
    uint64_t after = 0, times = 1;
    int err;

    if (!verb || !name) {
        return "VERB and ERRNO are missing";
    }
    err = fake_errno_parse(name);
    if (err <= 0) {
        return "no such errno";
    }
    while (*w->at) {
        if (next_is(w, "after") ? !next_number(w, &after) :
            !next_is(w, "times") || !next_number(w, &times)) {
            return "after N, times M";
        }
    }
    fake_rule_fail(verb, err, after, times);
    return NULL;
}

static const char *do_forget(Words *w)
{
    fake_rule_forget(next(w));
    return NULL;
}

static const char *do_delay(Words *w)
{
    fake_rule_delay(next(w));
    return NULL;
}

static const char *do_release(Words *w)
{
    fake_rule_release(next(w));
    return NULL;
}

static const char *do_await(Words *w)
{
    const char *verb = next(w);
    uint64_t n = 1;

    if (!verb || (*w->at && !next_number(w, &n))) {
        return "VERB and maybe a number";
    }
    while (fake_rule_waiting(verb) < n) {
        fake_wait();
    }
    return NULL;
}

static const char *do_auto(Words *w)
{
    if (next_is(w, "on")) {
        fake.hands_off = false;
        fake_run();
    } else if (next_is(w, "off")) {
        fake.hands_off = true;
    } else {
        return "on or off";
    }
    return NULL;
}

static const char *do_complete(Words *w)
{
    uint64_t qpn, count = 1;
    int status = IBV_WC_SUCCESS;
    FakeQp *qp;
    bool send;

    if (!next_number(w, &qpn)) {
        return "QPN is missing";
    }
    qp = fake_find(FAKE_QP, qpn);
    if (!qp) {
        return "no such QP";
    }
    send = next_is(w, "send");
    if (!send && !next_is(w, "recv")) {
        return "send or recv";
    }
    while (*w->at) {
        if (next_is(w, "count")) {
            if (!next_number(w, &count)) {
                return "count N";
            }
            continue;
        }
        status = fake_status_parse(next(w));
        if (status < 0) {
            return "no such status";
        }
    }
    while (count--) {
        if (!fake_complete(qp, send, status)) {
            return "the queue is empty";
        }
    }
    return NULL;
}

static const char *do_wc(Words *w)
{
    FakeCqe cqe = { .scripted = true };
    uint64_t cqn, value;
    FakeCq *cq;

    if (!next_number(w, &cqn)) {
        return "CQ is missing";
    }
    cq = fake_find(FAKE_CQ, cqn);
    if (!cq) {
        return "no such CQ";
    }
    while (*w->at) {
        g_auto(GStrv) pair = g_strsplit(next(w), "=", 2);

        if (!pair[0] || !pair[1]) {
            return "KEY=VALUE";
        }
        if (!strcmp(pair[0], "status")) {
            int status = fake_status_parse(pair[1]);

            if (status < 0) {
                return "no such status";
            }
            cqe.wc.status = status;
            continue;
        }
        if (!number_of(pair[1], &value)) {
            return "no number";
        }
        if (!strcmp(pair[0], "wr_id")) {
            cqe.wc.wr_id = value;
        } else if (!strcmp(pair[0], "opcode")) {
            cqe.wc.opcode = value;
        } else if (!strcmp(pair[0], "qp_num")) {
            cqe.wc.qp_num = value;
        } else if (!strcmp(pair[0], "src_qp")) {
            cqe.wc.src_qp = value;
        } else if (!strcmp(pair[0], "byte_len")) {
            cqe.wc.byte_len = value;
        } else if (!strcmp(pair[0], "flags")) {
            cqe.wc.wc_flags = value;
        } else if (!strcmp(pair[0], "imm")) {
            cqe.wc.imm_data = cpu_to_be32(value);
        } else if (!strcmp(pair[0], "vendor_err")) {
            cqe.wc.vendor_err = value;
        } else {
            return "no such key";
        }
    }
    fake_cq_add(cq, &cqe);
    return NULL;
}

static const char *do_event(Words *w)
{
    struct ibv_context *context = NULL;
    const char *name = next(w);
    int type = name ? fake_event_parse(name) : -1;
    FakeObj *obj = NULL;
    uint64_t number;

    if (type < 0) {
        return "no such event";
    }
    if (!*w->at) {
        fake_event(type, NULL, NULL);
        return NULL;
    }
    if (!next_number(w, &number)) {
        return "no number";
    }
    if (type == IBV_EVENT_CQ_ERR) {
        FakeCq *cq = fake_find(FAKE_CQ, number);

        obj = cq ? &cq->obj : NULL;
        context = cq ? cq->ibv.context : NULL;
    } else if (type == IBV_EVENT_SRQ_ERR ||
               type == IBV_EVENT_SRQ_LIMIT_REACHED) {
        FakeSrq *srq = fake_find(FAKE_SRQ, number);

        obj = srq ? &srq->obj : NULL;
        context = srq ? srq->ibv.context : NULL;
    } else {
        FakeQp *qp = fake_find(FAKE_QP, number);

        obj = qp ? &qp->obj : NULL;
        context = qp ? qp->ibv.context : NULL;
    }
    if (!obj) {
        return "no such object";
    }
    fake_event(type, context, obj);
    return NULL;
}

static const char *do_gid(Words *w)
{
    struct ibv_gid_entry entry = {
        .port_num = 1, .gid_type = IBV_GID_TYPE_ROCE_V2, .ndev_ifindex = 1,
    };
    uint8_t *raw = entry.gid.raw;
    const char *address;
    uint64_t index, value;

    if (!next_number(w, &index) || index >= FAKE_IBVERBS_GIDS) {
        return "INDEX is missing, or too large";
    }
    address = next(w);
    if (!address) {
        return "the address is missing";
    }
    if (!strcmp(address, "none")) {
        memset(&fake.gid[index], 0, sizeof(fake.gid[index]));
        return NULL;
    }
    if (inet_pton(AF_INET, address, raw + 12) == 1) {
        raw[10] = raw[11] = 0xff;
    } else if (inet_pton(AF_INET6, address, raw) != 1) {
        return "no address";
    }
    while (*w->at) {
        if (next_is(w, "v1")) {
            entry.gid_type = IBV_GID_TYPE_ROCE_V1;
        } else if (next_is(w, "ib")) {
            entry.gid_type = IBV_GID_TYPE_IB;
        } else if (next_is(w, "ifindex") && next_number(w, &value)) {
            entry.ndev_ifindex = value;
        } else if (!next_is(w, "v2")) {
            return "v1, v2, ib, ifindex N";
        }
    }
    entry.gid_index = index;
    fake.gid[index] = entry;
    return NULL;
}

static const char *do_port(Words *w)
{
    bool up = next_is(w, "up");

    if (!up && !next_is(w, "down")) {
        return "up or down";
    }
    fake.port.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    fake.port.phys_state = up ? 5 : 3; /* LinkUp, Disabled */
    fake_event(up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, NULL, NULL);
    fake_run();
    return NULL;
}

static const char *do_link(Words *w)
{
    if (next_is(w, "ethernet")) {
        fake.port.link_layer = IBV_LINK_LAYER_ETHERNET;
    } else if (next_is(w, "infiniband")) {
        fake.port.link_layer = IBV_LINK_LAYER_INFINIBAND;
    } else {
        return "ethernet or infiniband";
    }
    return NULL;
}

static const char *do_mtu(Words *w)
{
    uint64_t mtu;

    if (!next_number(w, &mtu) || !is_power_of_2(mtu) || mtu < 256 ||
        mtu > 4096) {
        return "256, 512, 1024, 2048 or 4096";
    }
    fake.port.active_mtu = IBV_MTU_256 + ctz64(mtu) - 8;
    return NULL;
}

static const char *do_violations(Words *w)
{
    uint64_t pkey, qkey;

    if (!next_number(w, &pkey) || !next_number(w, &qkey)) {
        return "P_KEY and Q_KEY are numbers";
    }
    fake.port.bad_pkey_cntr = pkey;
    fake.port.qkey_viol_cntr = qkey;
    return NULL;
}

static const char *do_sysfs(Words *w)
{
    fake_device_set_sysfs(next(w));
    return NULL;
}

static const char *do_attr(Words *w)
{
#define ATTR(name) { #name, &fake.attr.name }
    static const struct {
        const char *name;
        int *value;
    } attrs[] = {
        ATTR(max_qp), ATTR(max_qp_wr), ATTR(max_sge), ATTR(max_sge_rd),
        ATTR(max_cq), ATTR(max_cqe), ATTR(max_mr), ATTR(max_pd),
        ATTR(max_qp_rd_atom), ATTR(max_qp_init_rd_atom), ATTR(max_mw),
        ATTR(max_mcast_grp), ATTR(max_mcast_qp_attach), ATTR(max_ah),
        ATTR(max_srq), ATTR(max_srq_wr), ATTR(max_srq_sge),
    };
#undef ATTR
    const char *name = next(w);
    uint64_t value;

    if (!name || !next_number(w, &value)) {
        return "NAME and VALUE are missing";
    }
    if (!strcmp(name, "device_cap_flags")) {
        fake.attr.device_cap_flags = value;
        return NULL;
    }
    if (!strcmp(name, "atomic_cap")) {
        fake.attr.atomic_cap = value;
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_SIZE(attrs); i++) {
        if (!strcmp(attrs[i].name, name)) {
            *attrs[i].value = value;
            return NULL;
        }
    }
    return "no such attribute";
}

static const char *do_memlock(Words *w)
{
    return next_number(w, &fake.memlock) ? NULL : "BYTES are missing";
}

static const char *do_keep(Words *w)
{
    fake.keeps_nothing = next_is(w, "off");
    return fake.keeps_nothing || next_is(w, "on") ? NULL : "on or off";
}

static const char *do_device(Words *w)
{
    if (next_is(w, "gone")) {
        fake_device_gone();
    } else if (next_is(w, "back")) {
        fake.gone = false;
    } else {
        return "gone or back";
    }
    return NULL;
}

static const char *do_count(Words *w)
{
    for (FakeKind kind = 0; kind < FAKE_KINDS; kind++) {
        g_string_append_printf(w->out, "%s%s=%u", kind ? " " : "",
                               fake_kind_name(kind), fake.count[kind]);
    }
    g_string_append(w->out, "\n");
    return NULL;
}

static void describe(GString *out, FakeObj *obj)
{
    g_string_append_printf(out, "%s number=0x%x users=%u",
                           fake_kind_name(obj->kind), obj->number,
                           obj->users);
    if (obj->kind == FAKE_QP) {
        FakeQp *qp = (FakeQp *)obj;

        g_string_append_printf(out, " state=%d type=%d dest=0x%x sq=%u rq=%u "
                               "send_cq=0x%x recv_cq=0x%x srq=0x%x",
                               qp->attr.qp_state, qp->ibv.qp_type,
                               qp->attr.dest_qp_num, qp->sq.length,
                               qp->rq.length, qp->ibv.send_cq->handle,
                               qp->ibv.recv_cq->handle,
                               qp->ibv.srq ? qp->ibv.srq->handle : 0);
    } else if (obj->kind == FAKE_CQ) {
        FakeCq *cq = (FakeCq *)obj;

        g_string_append_printf(out, " cqe=%d entries=%u armed=%d",
                               cq->ibv.cqe, cq->cqes.length, cq->arm);
    } else if (obj->kind == FAKE_SRQ) {
        FakeSrq *srq = (FakeSrq *)obj;

        g_string_append_printf(out, " max_wr=%u limit=%u entries=%u",
                               srq->attr.max_wr, srq->attr.srq_limit,
                               srq->wrs.length);
    } else if (obj->kind == FAKE_MR) {
        FakeMr *mr = (FakeMr *)obj;

        g_string_append_printf(out, " lkey=0x%x rkey=0x%x iova=0x%" PRIx64
                               " length=0x%zx access=0x%x", mr->ibv.lkey,
                               mr->ibv.rkey, mr->iova, mr->ibv.length,
                               mr->access);
    } else if (obj->kind == FAKE_MW) {
        FakeMw *mw = (FakeMw *)obj;

        g_string_append_printf(out, " rkey=0x%x type=%d bound=%d",
                               mw->ibv.rkey, mw->ibv.type, !!mw->mr);
    }
    g_string_append(out, "\n");
}

static const char *do_objects(Words *w)
{
    for (FakeKind kind = 0; kind < FAKE_KINDS; kind++) {
        GList *all = fake_all(kind);

        for (GList *l = all; l; l = l->next) {
            describe(w->out, l->data);
        }
        g_list_free(all);
    }
    return NULL;
}

static const char *do_calls(Words *w)
{
    g_string_append_printf(w->out, "%u\n", fake_rule_calls(next(w)));
    return NULL;
}

static const char *do_log(Words *w)
{
    if (next_is(w, "clear")) {
        fake_log_clear();
    } else {
        fake_log_print(w->out);
    }
    return NULL;
}

void fake_command(const char *line, GString *out)
{
    static const struct {
        const char *name;
        const char *(*func)(Words *w);
        const char *needs;          /* the error without any word */
    } commands[] = {
        { "fail", do_fail }, { "forget", do_forget, "VERB is missing" },
        { "delay", do_delay, "VERB is missing" }, { "release", do_release },
        { "await", do_await }, { "auto", do_auto },
        { "complete", do_complete }, { "wc", do_wc },
        { "event", do_event }, { "gid", do_gid }, { "port", do_port },
        { "link", do_link }, { "mtu", do_mtu }, { "attr", do_attr },
        { "violations", do_violations },
        { "sysfs", do_sysfs, "DIRECTORY is missing" },
        { "memlock", do_memlock }, { "device", do_device },
        { "count", do_count }, { "objects", do_objects },
        { "calls", do_calls, "VERB is missing" }, { "log", do_log },
        { "keep", do_keep },
    };
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    Words w = { words, out };
    const char *name = next(&w);
    const char *wrong = "no such command";

    if (!*line) {
        g_string_append(out, "ok\n");
        return;
    }
    for (size_t i = 0; name && i < ARRAY_SIZE(commands); i++) {
        if (!strcmp(commands[i].name, name)) {
            wrong = commands[i].needs && !*w.at ? commands[i].needs
                                                : commands[i].func(&w);
            break;
        }
    }
    if (!wrong && *w.at) {
        wrong = "more words than wanted";
    }
    if (wrong) {
        g_string_append_printf(out, "error: %s\n", wrong);
    } else {
        g_string_append(out, "ok\n");
    }
}
