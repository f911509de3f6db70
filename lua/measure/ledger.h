/* What policies have learned about a pair from earlier texts: named lists of numbers, one set per policy, kept in a
 * file for each pair, machine and way of sampling. A policy without a set begins with the lists of calibration.json in
 * the draft's folder, if there is one (models/HEADS.md): {"schema": "dtrun.calibration/2", "greedy": {NAME: [numbers]},
 * "sampled": ..}. Policies read and write them with costs:recall and costs:keep (policies/COSTS.md). Calls come from
 * one thread at a time. */
#ifndef DTL_LEDGER_H
#define DTL_LEDGER_H

#include "measure/costs.h"

#define LEDGER_BOOKS 8     /* policies; the one used least recently makes room */
#define LEDGER_LISTS 16    /* lists of a policy */
#define LEDGER_NAME 32     /* bytes of a list's name */
#define LEDGER_NUMBERS 256 /* numbers of a list */

typedef struct ledger ledger;
typedef struct ledger_book ledger_book; /* the lists of one policy */

/* An empty ledger without a file. The key names what its contents depend on. NULL: no memory. */
ledger *ledger_new(const char *key);

/* Reads the file, if there is one: `way` as in costs_find_learned. *wrong: why an existing file, or the draft's
 * calibration.json, is ignored (static), or NULL. A
 * scripted pair has no file; its ledger lives as long as the object. DT_ENOMEM. */
dt_status ledger_open(dt_pair *pair, const char *way, ledger **out, const char **wrong, dt_error *err);
void ledger_close(ledger *l); /* does not write; NULL is allowed */

const char *ledger_path(const ledger *l);

/* Writes the file if anything changed. Returns NULL, or the reason of a failure. */
const char *ledger_store(ledger *l);

/* The book of the policy whose text has this digest. It stays valid until LEDGER_BOOKS other policies were asked
 * for. */
ledger_book *ledger_of(ledger *l, const char *digest);

/* The list, *n numbers that the book owns; NULL: there is none. */
const double *ledger_get(const ledger_book *book, const char *name, int *n);

/* Sets a list of n <= LEDGER_NUMBERS finite numbers; n = 0 removes it. False: no room, a bad name, a bad number, or no
 * memory. */
bool ledger_set(ledger_book *book, const char *name, const double *numbers, int n);

/* The text of the file, malloc'd (NULL: no memory), and back: NULL, or why it is no ledger with this key (static). */
char *ledger_json(const ledger *l);
const char *ledger_parse(ledger *l, const char *json);

/* Takes the lists of a calibration.json that new books begin with. Returns NULL, or why it is none (static); then there
 * are none. */
const char *ledger_begin_with(ledger *l, const char *json, const char *way);

#endif
