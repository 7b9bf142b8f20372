-- A sort of 100,000 numbers, which spills to files where work_mem is small.
\set first random(1, 400000)
SELECT count(DISTINCT hashint4(aid)) FROM pgbench_accounts WHERE aid BETWEEN :first AND :first + 99999;
