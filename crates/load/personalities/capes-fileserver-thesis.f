# File server of the CAPES evaluation as in the thesis, one node's share: 2 instances on files of 100 MB.
# Li, section 5.2.4. The number of files is that of the paper's variant, of which half exist at first.
set $nfiles=256
set $filesize=100m
set $appendsize=200m
set $iosize=1m

define fileset name=bigfileset,path=$dir,size=$filesize,entries=$nfiles,dirwidth=20,prealloc=50

define process name=instance,instances=2
{
  thread name=client
  {
    flowop createfile name=createfile1,filesetname=bigfileset,fd=1
    flowop writewholefile name=writefile1,fd=1,srcfd=1,iosize=$iosize
    flowop closefile name=closefile1,fd=1
    flowop openfile name=openfile1,filesetname=bigfileset,fd=1
    flowop appendfilerand name=appendfile1,fd=1,iosize=$appendsize
    flowop closefile name=closefile2,fd=1
    flowop openfile name=openfile2,filesetname=bigfileset,fd=1
    flowop readwholefile name=readfile1,fd=1,iosize=$iosize
    flowop closefile name=closefile3,fd=1
    flowop deletefile name=deletefile1,filesetname=bigfileset
    flowop statfile name=statfile1,filesetname=bigfileset
  }
}

run 60
