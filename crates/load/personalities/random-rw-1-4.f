# Random reads and writes, 1 read to 4 writes: five threads on one file.
# Li et al., SC'17, section 4.3, one client's share; file and operations have Filebench's sizes, 5 GB and 8 KB.
set $filesize=5g
set $iosize=8k

define fileset name=largefile,path=$dir,size=$filesize,prealloc,reuse

define process name=randomrw,instances=1
{
  thread name=client,instances=5
  {
    flowop read name=read1,filesetname=largefile,iosize=$iosize,random,iters=1
    flowop write name=write1,filesetname=largefile,iosize=$iosize,random,iters=4
  }
}

run 60
