# Random reads and writes of 1 MB past the cache, one read a write: 5 clients on one shared file of 5 GB.
# Li, section 3.2.2.
set $filesize=5g
set $iosize=1m

define fileset name=shared,path=$dir,size=$filesize,prealloc,reuse

define process name=clients,instances=5
{
  thread name=client
  {
    flowop read name=read1,filesetname=shared,iosize=$iosize,random,directio
    flowop write name=write1,filesetname=shared,iosize=$iosize,random,directio
  }
}

run 60
