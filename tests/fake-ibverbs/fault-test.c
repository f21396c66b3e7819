/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The double of libibverbs executes the commands of a test. */
#include "qemu/osdep.h"
#include "self-test.h"

/* Calls that fail on request; each returns an errno. */

static End *victim;

static int of_pointer(void *result)
{
    g_assert_null(result);
    return errno;
}

/* Verbs that the test can make fail */
typedef enum Verb {
    OPEN_DEVICE, GET_DEVICE_LIST, QUERY_DEVICE, QUERY_PORT, QUERY_GID,
    QUERY_GID_EX, QUERY_GID_TABLE, ALLOC_PD, DEALLOC_PD, REG_MR, REG_MR_IOVA2,
    REREG_MR, DEREG_MR, ALLOC_MW, CREATE_COMP_CHANNEL, CREATE_CQ, RESIZE_CQ,
    REQ_NOTIFY_CQ, POLL_CQ, DESTROY_CQ, CREATE_SRQ, CREATE_QP, MODIFY_QP,
    QUERY_QP, DESTROY_QP, POST_SEND, POST_RECV, CREATE_AH, ATTACH_MCAST,
} Verb;

static const char *const verbs[] = {
    [OPEN_DEVICE] = "open_device", [GET_DEVICE_LIST] = "get_device_list",
    [QUERY_DEVICE] = "query_device", [QUERY_PORT] = "query_port",
    [QUERY_GID] = "query_gid", [QUERY_GID_EX] = "query_gid_ex",
    [QUERY_GID_TABLE] = "query_gid_table", [ALLOC_PD] = "alloc_pd",
    [DEALLOC_PD] = "dealloc_pd", [REG_MR] = "reg_mr",
    [REG_MR_IOVA2] = "reg_mr_iova2", [REREG_MR] = "rereg_mr",
    [DEREG_MR] = "dereg_mr", [ALLOC_MW] = "alloc_mw",
    [CREATE_COMP_CHANNEL] = "create_comp_channel", [CREATE_CQ] = "create_cq",
    [RESIZE_CQ] = "resize_cq", [REQ_NOTIFY_CQ] = "req_notify_cq",
    [POLL_CQ] = "poll_cq", [DESTROY_CQ] = "destroy_cq",
    [CREATE_SRQ] = "create_srq", [CREATE_QP] = "create_qp",
    [MODIFY_QP] = "modify_qp", [QUERY_QP] = "query_qp",
    [DESTROY_QP] = "destroy_qp", [POST_SEND] = "post_send",
    [POST_RECV] = "post_recv", [CREATE_AH] = "create_ah",
    [ATTACH_MCAST] = "attach_mcast",
};

/* Call the verb, and return its errno. */
static int try_verb(Verb verb)
{
    struct ibv_srq_init_attr srq_init = { .attr = { 1, 1, 0 } };
    struct ibv_ah_attr ah = { .is_global = 1, .port_num = 1 };
    struct ibv_gid_entry entries[FAKE_IBVERBS_GIDS];
    struct ibv_send_wr wr = wr_of(IBV_WR_SEND, 1, NULL);
    union ibv_gid group = { .raw = { 0xff } };
    struct ibv_qp_init_attr qp_init;
    struct ibv_device_attr device;
    struct ibv_port_attr port;
    struct ibv_qp_attr qp;
    struct ibv_wc wc;

    switch (verb) {
    case OPEN_DEVICE:
        return of_pointer(ibv_open_device(victim->ctx->device));
    case GET_DEVICE_LIST:
        return of_pointer(ibv_get_device_list(NULL));
    case QUERY_DEVICE:
        return ibv_query_device(victim->ctx, &device);
    case QUERY_PORT:
        return ibv_query_port(victim->ctx, 1, &port);
    case QUERY_GID:
        return ibv_query_gid(victim->ctx, 1, 0, &group) ? errno : 0;
    case QUERY_GID_EX:
        return ibv_query_gid_ex(victim->ctx, 1, 0, entries, 0);
    case QUERY_GID_TABLE:
        return -ibv_query_gid_table(victim->ctx, entries, FAKE_IBVERBS_GIDS, 0);
    case ALLOC_PD:
        return of_pointer(ibv_alloc_pd(victim->ctx));
    case DEALLOC_PD:
        return ibv_dealloc_pd(victim->pd);
    case REG_MR:
        return of_pointer(ibv_reg_mr(victim->pd, victim->buf, 1, 0));
    case REG_MR_IOVA2:
        return of_pointer(ibv_reg_mr_iova2(victim->pd, victim->buf, 1, 0, 0));
    case REREG_MR:
        return ibv_rereg_mr(victim->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
                            0, 0) ? errno : 0;
    case DEREG_MR:
        return ibv_dereg_mr(victim->mr);
    case ALLOC_MW:
        return of_pointer(ibv_alloc_mw(victim->pd, IBV_MW_TYPE_2));
    case CREATE_COMP_CHANNEL:
        return of_pointer(ibv_create_comp_channel(victim->ctx));
    case CREATE_CQ:
        return of_pointer(ibv_create_cq(victim->ctx, 1, NULL, NULL, 0));
    case RESIZE_CQ:
        return ibv_resize_cq(victim->cq, 64);
    case REQ_NOTIFY_CQ:
        return ibv_req_notify_cq(victim->cq, 0);
    case POLL_CQ:
        return -ibv_poll_cq(victim->cq, 1, &wc);
    case DESTROY_CQ:
        return ibv_destroy_cq(victim->cq);
    case CREATE_SRQ:
        return of_pointer(ibv_create_srq(victim->pd, &srq_init));
    case CREATE_QP:
        return of_pointer(new_qp(victim, IBV_QPT_RC, NULL));
    case MODIFY_QP:
        return to_init(victim->qp);
    case QUERY_QP:
        return ibv_query_qp(victim->qp, &qp, 0, &qp_init);
    case DESTROY_QP:
        return ibv_destroy_qp(victim->qp);
    case POST_SEND:
        return send_wr(victim, &wr);
    case POST_RECV:
        return recv_at(victim, 1, 0, 1);
    case CREATE_AH:
        return of_pointer(ibv_create_ah(victim->pd, &ah));
    case ATTACH_MCAST:
        return ibv_attach_mcast(victim->qp, &group, 0);
    }
    g_assert_not_reached();
}

static void test_failures(void)
{
    static const struct {
        const char *name;
        int err;
    } errors[] = { { "ENOMEM", ENOMEM }, { "EINVAL", EINVAL },
                   { "EPERM", EPERM }, { "EIO", EIO }, { "101", 101 } };
    g_autofree char *before = NULL;
    g_auto(End) e = end_new(IBV_QPT_RC);

    victim = &e;
    before = fake_verbs_ask(fake, "count");
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(errors); j++) {
            g_autofree char *after = NULL;
            unsigned calls = fake_verbs_calls(fake, verbs[i]);

            fake_verbs_tell(fake, "fail %s %s times 2", verbs[i],
                            errors[j].name);
            g_assert_cmpint(try_verb(i), ==, errors[j].err);
            g_assert_cmpint(try_verb(i), ==, errors[j].err);
            g_assert_cmpint(fake_verbs_calls(fake, verbs[i]), ==,
                            calls + 2);
            after = fake_verbs_ask(fake, "count");
            g_assert_cmpstr(after, ==, before);
        }
    }
    fake_verbs_tell(fake, "fail query_port EACCES after 1");
    g_assert_cmpint(try_verb(QUERY_PORT), ==, 0);
    g_assert_cmpint(try_verb(QUERY_PORT), ==, EACCES);
    g_assert_cmpint(try_verb(QUERY_PORT), ==, 0);
    fake_verbs_tell(fake, "fail query_port EACCES times 0");
    g_assert_cmpint(try_verb(QUERY_PORT), ==, EACCES);
    g_assert_cmpint(try_verb(QUERY_PORT), ==, EACCES);
    fake_verbs_tell(fake, "forget query_port");
    g_assert_cmpint(try_verb(QUERY_PORT), ==, 0);
}

static void test_limits(void)
{
    g_auto(End) e = end_new(IBV_QPT_RC);

    victim = &e;
    fake_verbs_tell(fake, "attr max_qp 1");
    g_assert_cmpint(try_verb(CREATE_QP), ==, ENOMEM);
    fake_verbs_tell(fake, "attr max_qp 1024");
    fake_verbs_tell(fake, "attr max_mr 1");
    g_assert_cmpint(try_verb(REG_MR), ==, ENOMEM);
    fake_verbs_tell(fake, "attr max_mr 4096");
}

static gpointer register_late(gpointer opaque)
{
    End *e = opaque;

    return ibv_reg_mr(e->pd, e->buf, SIZE, 0);
}

static void test_delay(void)
{
    g_auto(End) e = end_new(IBV_QPT_RC);
    GThread *thread;
    struct ibv_mr *mr;

    fake_verbs_tell(fake, "delay reg_mr");
    thread = g_thread_new("late", register_late, &e);
    fake_verbs_tell(fake, "await reg_mr");
    g_assert_cmpint(fake_verbs_count(fake, "mr"), ==, 1);
    /* other verbs go on meanwhile */
    g_assert_cmpint(to_init(e.qp), ==, 0);
    fake_verbs_tell(fake, "release reg_mr");
    mr = g_thread_join(thread);
    g_assert_nonnull(mr);
    g_assert_cmpint(ibv_dereg_mr(mr), ==, 0);

    /* a call may fail after it has waited */
    fake_verbs_tell(fake, "delay reg_mr");
    thread = g_thread_new("late", register_late, &e);
    fake_verbs_tell(fake, "await reg_mr 1");
    fake_verbs_tell(fake, "fail reg_mr ENOMEM");
    fake_verbs_tell(fake, "release");
    g_assert_null(g_thread_join(thread));
}

static void test_by_hand(void)
{
    struct ibv_send_wr wr = wr_of(IBV_WR_SEND, 1, NULL);
    struct ibv_wc wc;
    g_auto(End) a, b;

    pair_new(&a, &b, IBV_QPT_RC);
    fake_verbs_tell(fake, "auto off");
    g_assert_cmpint(recv_at(&b, 7, 0, 1), ==, 0);
    g_assert_cmpint(send_wr(&a, &wr), ==, 0);
    wr.wr_id = 2;
    g_assert_cmpint(send_wr(&a, &wr), ==, 0);
    expect_nothing(&a);
    fake_verbs_tell(fake, "complete 0x%x send", a.qp->qp_num);
    expect_wc(&a, 1, IBV_WC_SUCCESS);
    expect_nothing(&a);
    fake_verbs_tell(fake, "complete 0x%x send RNR_RETRY_EXC_ERR",
                    a.qp->qp_num);
    expect_wc(&a, 2, IBV_WC_RNR_RETRY_EXC_ERR);
    g_free(fake_verbs_refuses(fake, "complete 0x1 send"));
    fake_verbs_tell(fake, "complete 0x%x recv", b.qp->qp_num);
    expect_wc(&b, 7, IBV_WC_SUCCESS);
    fake_verbs_tell(fake, "wc 0x%x wr_id=9 qp_num=0x77 status=GENERAL_ERR "
                    "vendor_err=3", a.cq->handle);
    wc = next_wc(&a);
    g_assert_cmpint(wc.wr_id, ==, 9);
    g_assert_cmpint(wc.qp_num, ==, 0x77);
    g_assert_cmpint(wc.status, ==, IBV_WC_GENERAL_ERR);
    g_assert_cmpint(wc.vendor_err, ==, 3);
    fake_verbs_tell(fake, "auto on");
}

static gpointer destroy_late(gpointer opaque)
{
    return GINT_TO_POINTER(ibv_destroy_qp(opaque));
}

static void test_events(void)
{
    struct ibv_async_event event;
    struct ibv_port_attr port;
    GThread *thread;
    g_auto(End) e = end_new(IBV_QPT_RC);

    g_assert_false(readable(e.ctx->async_fd));
    fake_verbs_tell(fake, "port down");
    event = next_event(e.ctx, IBV_EVENT_PORT_ERR);
    g_assert_cmpint(event.element.port_num, ==, 1);
    ibv_ack_async_event(&event);
    g_assert_cmpint(ibv_query_port(e.ctx, 1, &port), ==, 0);
    g_assert_cmpint(port.state, ==, IBV_PORT_DOWN);
    fake_verbs_tell(fake, "port up");
    event = next_event(e.ctx, IBV_EVENT_PORT_ACTIVE);
    ibv_ack_async_event(&event);
    g_assert_false(readable(e.ctx->async_fd));

    /* an event that was read keeps the object until it is acknowledged */
    fake_verbs_tell(fake, "event QP_FATAL 0x%x", e.qp->qp_num);
    event = next_event(e.ctx, IBV_EVENT_QP_FATAL);
    thread = g_thread_new("destroy", destroy_late, event.element.qp);
    g_assert_cmpint(fake_verbs_count(fake, "qp"), ==, 1);
    ibv_ack_async_event(&event);
    g_assert_cmpint(GPOINTER_TO_INT(g_thread_join(thread)), ==, 0);

    /* an event that was not read goes with the object */
    e.qp = new_qp(&e, IBV_QPT_RC, NULL);
    fake_verbs_tell(fake, "event QP_FATAL 0x%x", e.qp->qp_num);
    g_assert_true(readable(e.ctx->async_fd));
    g_assert_cmpint(ibv_destroy_qp(e.qp), ==, 0);
    g_assert_false(readable(e.ctx->async_fd));
    g_free(fake_verbs_refuses(fake, "event QP_FATAL 0x1107"));
    e.qp = NULL;
}

static void test_overrun(void)
{
    struct ibv_async_event event;
    g_auto(End) e = end_new(IBV_QPT_RC);

    for (int i = 0; i < 4 * DEPTH; i++) {
        fake_verbs_tell(fake, "wc 0x%x wr_id=%d", e.cq->handle, i);
    }
    g_assert_false(readable(e.ctx->async_fd));
    fake_verbs_tell(fake, "wc 0x%x wr_id=99", e.cq->handle);
    event = next_event(e.ctx, IBV_EVENT_CQ_ERR);
    g_assert_true(event.element.cq == e.cq);
    ibv_ack_async_event(&event);
}

static void test_device_gone(void)
{
    struct ibv_async_event event;
    struct ibv_device **list;
    int n;
    End e = end_new(IBV_QPT_RC);

    victim = &e;
    fake_verbs_tell(fake, "device gone");
    event = next_event(e.ctx, IBV_EVENT_DEVICE_FATAL);
    ibv_ack_async_event(&event);
    g_assert_cmpint(try_verb(CREATE_QP), ==, EIO);
    g_assert_cmpint(try_verb(QUERY_PORT), ==, EIO);
    g_assert_cmpint(try_verb(OPEN_DEVICE), ==, ENODEV);
    g_assert_cmpint(ibv_destroy_qp(e.qp), ==, EIO);
    g_assert_cmpint(fake_verbs_count_objects(fake), ==, 0);
    list = ibv_get_device_list(&n);
    g_assert_cmpint(n, ==, 0);
    ibv_free_device_list(list);
    /* the kernel has freed the objects, only this process still names them */
    g_assert_cmpint(ibv_close_device(e.ctx), ==, 0);
    fake_verbs_tell(fake, "device back");
    g_free(e.buf);
}

static void test_script_errors(void)
{
    static const char *wrong[] = {
        "dance", "fail", "fail alloc_pd", "fail alloc_pd EWHAT",
        "fail alloc_pd ENOMEM often", "auto", "complete", "event NOTHING",
        "gid 0", "gid 16 ::1", "gid 0 here", "port", "mtu 1000",
        "attr max_dreams 1", "device", "count all", "wc 0x1 wr_id=0",
    };

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        g_free(fake_verbs_refuses(fake, wrong[i]));
    }
}

void add_fake_fault_tests(void)
{
    fake_test_add("verbs-fail-as-told", test_failures);
    fake_test_add("limits", test_limits);
    fake_test_add("calls-wait-until-released", test_delay);
    fake_test_add("completions-by-hand", test_by_hand);
    fake_test_add("events", test_events);
    fake_test_add("cq-overrun", test_overrun);
    fake_test_add("script-errors", test_script_errors);
    /* verbs that destroy objects fail after the kernel has freed these */
    g_test_add_func("/fake-ibverbs/device-gone", test_device_gone);
}
