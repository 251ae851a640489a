# Jobs of which every other one is a gang, for `berth replay --mode time` on the 30 nodes of three GPU models of nodes.csv. Every awk
# makes the same trace:
#
#     awk -v seed=1 -v jobs=250 -v load=0.9 -v mixed=false -f hack/bench/models/jobs.awk > jobs.csv
#
# load is the part of the 240 GPUs that is asked for in the mean; mixed=true lets every gang run on several models.

# random is Park and Miller's generator: awks differ in their own.
function random() { s = (s * 16807) % 2147483647; return s / 2147483647 }

BEGIN {
  s = seed
  for (i = 0; i < 10; i++) random() # small seeds begin alike
  hours = 4 # that a job runs in the mean
  print "name,arrival,duration,pods,cpu_milli,memory_mib,gpus,gang,mixed_models"
  for (n = 1; n <= jobs; n++) {
    gang = n % 2 == 0
    size = gang ? 2 ^ (1 + int(random() * 3)) : 1
    gpus = 2 ^ int(random() * 4)
    while (size * gpus > 64) gpus /= 2
    # The larger a job, the longer until the next one, so that the load is even.
    t += -log(1 - random()) * size * gpus * hours * 3600 / (240 * load)
    printf "job-%d,%d,%d,%d,%d,%d,%d,%s,%s\n", n, t, 180 - log(1 - random()) * hours * 3600, size, \
      8000 * gpus, 65536 * gpus, gpus, gang ? "true" : "", gang ? mixed : ""
  }
}
