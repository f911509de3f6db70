/* A ledger keeps what policies have learned about a pair from earlier texts: named lists of numbers, one set per
 * policy, in a file for each pair, machine and way of sampling. Policies read and write them with costs:recall and
 * costs:keep (policies/COSTS.md). A policy without a set begins with the lists of calibration.json in the draft's
 * folder, if that exists (models/HEADS.md): {"schema": "dtrun.calibration/2", "greedy": {NAME: [numbers]}, "sampled":
 * ..}. Only one thread may use a ledger at a time. */
#ifndef DTL_LEDGER_H
#define DTL_LEDGER_H

#include "measure/costs.h"

#define LEDGER_BOOKS 8     /* maximum number of policies; the least recently used one is dropped */
#define LEDGER_LISTS 16    /* maximum number of lists per policy */
#define LEDGER_NAME 32     /* maximum bytes of a list's name */
#define LEDGER_NUMBERS 256 /* maximum number of numbers in a list */

typedef struct ledger ledger;
typedef struct ledger_book ledger_book; /* the lists of one policy */

/* An empty ledger without a file. The key names what its contents depend on. NULL: out of memory. */
ledger *ledger_new(const char *key);

/* Why the ledger's file, or the calibration.json of the draft, is ignored (static); NULL: it is not. */
typedef struct {
  const char *file, *calibration;
} ledger_faults;

/* Opens the ledger of a pair and reads its file, if there is one. way: as in costs_find_learned. After a fault,
 * ledger_store writes a file even if nothing was kept, so that each fault is found once. The ledger of a scripted pair
 * has no file. DT_ENOMEM. */
dt_status ledger_open(dt_pair *pair, const char *way, ledger **out, ledger_faults *faults, dt_error *err);
void ledger_close(ledger *l); /* does not write; NULL is allowed */

const char *ledger_path(const ledger *l);

/* Writes the file if anything has changed since the last call. Returns NULL, or the reason of a failure. */
const char *ledger_store(ledger *l);

/* The book of the policy whose text has this digest. It is valid until LEDGER_BOOKS other books were requested. */
ledger_book *ledger_of(ledger *l, const char *digest);

/* The list with this name: *n numbers, owned by the book; NULL: there is no such list. */
const double *ledger_get(const ledger_book *book, const char *name, int *n);

/* Sets a list of n <= LEDGER_NUMBERS finite numbers; n = 0 removes it. False: there is no room or memory, or the name
 * or a number is invalid. */
bool ledger_set(ledger_book *book, const char *name, const double *numbers, int n);

/* The text of the file. malloc'd; NULL: out of memory. */
char *ledger_json(const ledger *l);
/* Reads such a text. Returns NULL, or why it is not a ledger with this key (static). */
const char *ledger_parse(ledger *l, const char *json);

/* Reads the lists that new books begin with, from a calibration.json. Returns NULL, or why it is not valid (static),
 * after which new books begin empty. */
const char *ledger_begin_with(ledger *l, const char *json, const char *way);

#endif
