#!/bin/bash
#SBATCH --job-name=swarm-ray
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=04:00:00
#SBATCH --requeue
set -euo pipefail

run=runs/$SLURM_JOB_ID
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$head:$((20000 + SLURM_JOB_ID % 10000)) # several jobs may share a node
export OMP_NUM_THREADS=1 RAY_AUTH_MODE=token
ray get-auth-token --generate > /dev/null # into ~/.ray/auth_token, which all nodes see
trap 'kill $(jobs -p) 2> /dev/null || true' EXIT # Ray ends with the job

srun --nodes=1 --ntasks=1 --nodelist="$head" \
    ray start --head --port="${address#*:}" --num-cpus="$SLURM_CPUS_PER_TASK" \
    --include-dashboard=false --disable-usage-stats --block &
for _ in $(seq 60); do
    ray status --address="$address" > /dev/null 2>&1 && break
    sleep 5
done
others=$((SLURM_JOB_NUM_NODES - 1))
if test "$others" -gt 0; then
    srun --nodes="$others" --ntasks="$others" --exclude="$head" \
        ray start --address="$address" --num-cpus="$SLURM_CPUS_PER_TASK" --block &
fi

on_head() { srun --overlap --nodes=1 --ntasks=1 --nodelist="$head" "$@"; }
test -d "$run" || on_head swarm-ui eval phone --split parameters -n 1000 --agents 4 --rounds 3 \
    --url "$SWARM_URL" --model "$SWARM_MODEL" --on "ray:$address" --out "$run" --quiet
test -e "$run/results.json" ||
    on_head swarm-ui eval --resume "$run" --trust --on "ray:$address" --quiet
