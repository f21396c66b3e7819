/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The double of libibverbs: rules for calls that fail or wait, and the log of
 * calls.
 */
#include "qemu/osdep.h"
#include "internal.h"

#define LOG_LINES 1000

typedef struct Rule {
    int err;
    unsigned after;                 /* calls that do not fail */
    unsigned times;                 /* calls that fail then; 0: all */
} Rule;

typedef struct Verb {
    unsigned calls;
    bool delayed;
    unsigned waiting;
    GQueue rules;
} Verb;

static GHashTable *verbs;           /* of Verb, by name */
static GQueue log_lines = G_QUEUE_INIT;

static Verb *verb_get(const char *name)
{
    Verb *verb;

    if (!verbs) {
        verbs = g_hash_table_new(g_str_hash, g_str_equal);
    }
    verb = g_hash_table_lookup(verbs, name);
    if (!verb) {
        verb = g_new0(Verb, 1);
        g_hash_table_insert(verbs, g_strdup(name), verb);
    }
    return verb;
}

int fake_rule_apply(const char *name)
{
    Verb *verb = verb_get(name);

    verb->calls++;
    if (verb->delayed) {
        verb->waiting++;
        fake_changed();
        while (verb->delayed) {
            fake_wait();
        }
        verb->waiting--;
    }
    for (GList *l = verb->rules.head; l; l = l->next) {
        Rule *rule = l->data;
        int err = rule->err;

        if (rule->after) {
            rule->after--;
            continue;
        }
        if (rule->times && !--rule->times) {
            g_queue_delete_link(&verb->rules, l);
            g_free(rule);
        }
        return err;
    }
    return 0;
}

void fake_rule_fail(const char *name, int err, unsigned after,
                    unsigned times)
{
    Rule *rule = g_new0(Rule, 1);

    rule->err = err;
    rule->after = after;
    rule->times = times;
    g_queue_push_tail(&verb_get(name)->rules, rule);
}

void fake_rule_forget(const char *name)
{
    g_queue_clear_full(&verb_get(name)->rules, g_free);
}

void fake_rule_delay(const char *name)
{
    verb_get(name)->delayed = true;
}

void fake_rule_release(const char *name)
{
    GHashTableIter iter;
    gpointer key, value;

    if (name) {
        verb_get(name)->delayed = false;
    } else if (verbs) {
        g_hash_table_iter_init(&iter, verbs);
        while (g_hash_table_iter_next(&iter, &key, &value)) {
            ((Verb *)value)->delayed = false;
        }
    }
    fake_changed();
}

unsigned fake_rule_waiting(const char *name)
{
    return verb_get(name)->waiting;
}

unsigned fake_rule_calls(const char *name)
{
    return verb_get(name)->calls;
}

void fake_log_add(const char *verb, int err, const char *detail)
{
    g_queue_push_tail(&log_lines,
                      g_strdup_printf("%s %s%s%s", verb,
                                      err ? fake_errno_name(err) : "ok",
                                      *detail ? " " : "", detail));
    if (log_lines.length > LOG_LINES) {
        g_free(g_queue_pop_head(&log_lines));
    }
}

void fake_log_print(GString *out)
{
    for (GList *l = log_lines.head; l; l = l->next) {
        g_string_append_printf(out, "%s\n", (char *)l->data);
    }
}

void fake_log_clear(void)
{
    g_queue_clear_full(&log_lines, g_free);
}
