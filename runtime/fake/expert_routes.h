/* Chooses the experts for the rows of a scripted target, as a function of the text. A layer has `chosen` places for
 * experts. At each token, a place keeps its expert with probability `kept`; otherwise it takes the expert that a hash
 * of the token names, or the next one that no earlier place has. Rows of neighbouring tokens therefore share about the
 * part `kept` of their experts, and rows with the same token choose the same new experts. */
#ifndef DT_FAKE_EXPERT_ROUTES_H
#define DT_FAKE_EXPERT_ROUTES_H

#include <stdint.h>

#define FAKE_LAYERS 1024 /* maximum number of layers */

typedef struct {
  int layers, experts, chosen; /* experts: number in a layer; 0: no experts */
  float kept;                  /* from 0 to 1 */
} fake_routes;

/* Writes a row's experts to id[layers][chosen], in rising order within a layer. token(row, back) returns a token of the
 * row's text, counted back from the last one, which is 0; the text has n tokens. */
void fake_route(const fake_routes *routes, int32_t (*token)(const void *row, int back), const void *row, int n,
                int32_t *id);

#endif
