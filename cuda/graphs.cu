/* The graphs of a cache's passes, one for each shape, the last used first. They take memory of the device that has no
 * size in advance. So a cache keeps at most MOST_GRAPHS; if there is no memory for one more, it drops all others, and
 * if that does not help, the device gives up graphs: kernels are launched one by one, which takes longer and changes no
 * bit. No graph is running when one is dropped, since a pass waits for its results. */
#include "graphs.cuh"

#include <new>

constexpr int MOST_GRAPHS = 64;

struct graph_list {
  pass_shape shape;
  cudaGraphExec_t exec;
  graph_list *next;
};

void graphs_free(graph_list *list) {
  while (list) {
    graph_list *next = list->next;
    cudaGraphExecDestroy(list->exec);
    delete list;
    list = next;
  }
}

/* Finds the graph of a shape and moves it to the front; null: there is none. */
static graph_list *find(dt_cache *c, pass_shape shape) {
  graph_list **at = &c->graphs;
  while (*at && !((*at)->shape == shape)) at = &(*at)->next;
  graph_list *found = *at;
  if (!found) return nullptr;
  *at = found->next;
  found->next = c->graphs;
  return c->graphs = found;
}

static void drop_oldest(dt_cache *c) {
  graph_list **at = &c->graphs;
  for (int n = 0; *at && n < MOST_GRAPHS; n++) at = &(*at)->next;
  graphs_free(*at);
  *at = nullptr;
}

static cudaError_t capture(const dt_weights *w, dt_cache *c, pass_shape shape, pass_kernels enqueue) {
  graph_list *entry = new (std::nothrow) graph_list{shape, nullptr, c->graphs};
  if (!entry) return cudaErrorMemoryAllocation;
  cudaGraph_t graph = nullptr;
  enqueuer q = {w, c, false, shape, w->backend->stream, cudaSuccess};
  must(&q, cudaStreamBeginCapture(q.stream, cudaStreamCaptureModeThreadLocal));
  if (q.failed == cudaSuccess) {
    enqueue(&q);
    cudaError_t ended = cudaStreamEndCapture(q.stream, &graph); /* also after a failure */
    must(&q, ended);
  }
  if (q.failed == cudaSuccess) must(&q, cudaGraphInstantiate(&entry->exec, graph, 0));
  if (graph) cudaGraphDestroy(graph);
  if (q.failed != cudaSuccess) {
    delete entry;
    return q.failed;
  }
  c->graphs = entry;
  drop_oldest(c);
  return cudaSuccess;
}

/* Whether the device had no memory for a graph. This error is not one of the device. */
static bool out_of_memory(cudaError_t e) {
  if (e == cudaErrorMemoryAllocation) cudaGetLastError();
  return e == cudaErrorMemoryAllocation;
}

cudaError_t start_one_by_one(const dt_weights *w, dt_cache *c, pass_shape shape, pass_kernels enqueue) {
  enqueuer q = {w, c, false, shape, w->backend->stream, cudaSuccess};
  enqueue(&q);
  return q.failed;
}

cudaError_t start_pass(const dt_weights *w, dt_cache *c, pass_shape shape, pass_kernels enqueue) {
  if (!w->backend->graphs) return start_one_by_one(w, c, shape, enqueue);
  cudaError_t e = find(c, shape) ? cudaSuccess : capture(w, c, shape, enqueue);
  if (out_of_memory(e) && c->graphs) {
    graphs_free(c->graphs);
    c->graphs = nullptr;
    e = capture(w, c, shape, enqueue);
  }
  if (e == cudaSuccess) e = cudaGraphLaunch(c->graphs->exec, w->backend->stream);
  if (!out_of_memory(e)) return e;
  w->backend->graphs = false; /* otherwise each pass would try again */
  w->backend->refused = cudaGetErrorString(e);
  describe_device(w->backend);
  return start_one_by_one(w, c, shape, enqueue);
}
