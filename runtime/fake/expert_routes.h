/* Experts of a scripted target's rows, as its texts say. A layer has `chosen` places for experts. At each token a place
 * keeps its expert with the chance `kept`, or else takes one that a hash of the token names, or the next that no place
 * before it has. So rows of neighbouring tokens share about `kept` of their experts, and rows of one token all that
 * they took again. */
#ifndef DT_FAKE_EXPERT_ROUTES_H
#define DT_FAKE_EXPERT_ROUTES_H

#include <stdint.h>

#define FAKE_LAYERS 1024 /* most layers */

typedef struct {
  int layers, experts, chosen; /* experts: of a layer; 0: there are none */
  float kept;                  /* from 0 to 1 */
} fake_routes;

/* Writes a row's experts to id[layers][chosen], those of a layer rising. token(row, back): that of the row's text,
 * `back` places before its last, which is 0; n tokens in all. */
void fake_route(const fake_routes *routes, int32_t (*token)(const void *row, int back), const void *row, int n,
                int32_t *id);

#endif
