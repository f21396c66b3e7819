/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The double of libibverbs: names of numbers.
 */
#include "qemu/osdep.h"
#include "internal.h"

typedef struct Name {
    int value;
    const char *name;
} Name;

#define ERRNO(name) { name, #name }
static const Name errnos[] = {
    ERRNO(EPERM), ERRNO(ENOENT), ERRNO(EINTR), ERRNO(EIO), ERRNO(EAGAIN),
    ERRNO(ENOMEM), ERRNO(EACCES), ERRNO(EFAULT), ERRNO(EBUSY), ERRNO(EEXIST),
    ERRNO(ENODEV), ERRNO(EINVAL), ERRNO(EMFILE), ERRNO(ENOSPC), ERRNO(EDOM),
    ERRNO(ENOSYS), ERRNO(ENODATA), ERRNO(EOVERFLOW), ERRNO(EMSGSIZE),
    ERRNO(EOPNOTSUPP), ERRNO(ENETUNREACH), ERRNO(ENOBUFS), ERRNO(ENOTCONN),
    ERRNO(ETIMEDOUT), ERRNO(EHOSTUNREACH), { EOPNOTSUPP, "ENOTSUP" },
};

#define STATUS(name) { IBV_WC_##name, #name }
static const Name statuses[] = {
    STATUS(SUCCESS), STATUS(LOC_LEN_ERR), STATUS(LOC_QP_OP_ERR),
    STATUS(LOC_EEC_OP_ERR), STATUS(LOC_PROT_ERR), STATUS(WR_FLUSH_ERR),
    STATUS(MW_BIND_ERR), STATUS(BAD_RESP_ERR), STATUS(LOC_ACCESS_ERR),
    STATUS(REM_INV_REQ_ERR), STATUS(REM_ACCESS_ERR), STATUS(REM_OP_ERR),
    STATUS(RETRY_EXC_ERR), STATUS(RNR_RETRY_EXC_ERR),
    STATUS(LOC_RDD_VIOL_ERR), STATUS(REM_INV_RD_REQ_ERR),
    STATUS(REM_ABORT_ERR), STATUS(INV_EECN_ERR), STATUS(INV_EEC_STATE_ERR),
    STATUS(FATAL_ERR), STATUS(RESP_TIMEOUT_ERR), STATUS(GENERAL_ERR),
};

#define EVENT(name) { IBV_EVENT_##name, #name }
static const Name events[] = {
    EVENT(CQ_ERR), EVENT(QP_FATAL), EVENT(QP_REQ_ERR), EVENT(QP_ACCESS_ERR),
    EVENT(COMM_EST), EVENT(SQ_DRAINED), EVENT(PATH_MIG),
    EVENT(PATH_MIG_ERR), EVENT(DEVICE_FATAL), EVENT(PORT_ACTIVE),
    EVENT(PORT_ERR), EVENT(LID_CHANGE), EVENT(PKEY_CHANGE),
    EVENT(SM_CHANGE), EVENT(SRQ_ERR), EVENT(SRQ_LIMIT_REACHED),
    EVENT(QP_LAST_WQE_REACHED), EVENT(CLIENT_REREGISTER),
    EVENT(GID_CHANGE), EVENT(WQ_FATAL),
};

static int parse(const Name *names, size_t n, const char *name)
{
    char *end;
    guint64 value = g_ascii_strtoull(name, &end, 0);

    if (*name && !*end && value <= INT_MAX) {
        return value;
    }
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(names[i].name, name)) {
            return names[i].value;
        }
    }
    return -1;
}

static const char *name_of(const Name *names, size_t n, int value)
{
    for (size_t i = 0; i < n; i++) {
        if (names[i].value == value) {
            return names[i].name;
        }
    }
    return "unknown";
}

int fake_errno_parse(const char *name)
{
    return parse(errnos, ARRAY_SIZE(errnos), name);
}

const char *fake_errno_name(int err)
{
    return name_of(errnos, ARRAY_SIZE(errnos), err);
}

int fake_status_parse(const char *name)
{
    return parse(statuses, ARRAY_SIZE(statuses), name);
}

int fake_event_parse(const char *name)
{
    return parse(events, ARRAY_SIZE(events), name);
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
    return name_of(statuses, ARRAY_SIZE(statuses), status);
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
    return name_of(events, ARRAY_SIZE(events), event);
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
    static const Name states[] = {
        { IBV_PORT_NOP, "NOP" }, { IBV_PORT_DOWN, "DOWN" },
        { IBV_PORT_INIT, "INIT" }, { IBV_PORT_ARMED, "ARMED" },
        { IBV_PORT_ACTIVE, "ACTIVE" },
        { IBV_PORT_ACTIVE_DEFER, "ACTIVE_DEFER" },
    };

    return name_of(states, ARRAY_SIZE(states), state);
}

const char *ibv_node_type_str(enum ibv_node_type node_type)
{
    return node_type == IBV_NODE_CA ? "CA" : "unknown";
}
